// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each of these types embeds another type in one odd way.
type (
	embedsPlain struct {
		Common
		Named `json:",inline"`
		Own   string `json:"own"`
	}
	// embedsShadowed has fields that hide those of embedded structs, declared before and after them.
	embedsShadowed struct {
		Own    string               `json:"name"`
		Left                        // Own hides its name
		Deeper struct{ Alone bool } `json:"alone"`
		West
		Once int
	}
	embedsPointer struct {
		*Extra `json:",inline"`
		Own    string `json:"own"`
	}
	embedsTagged struct {
		Named     `json:"named"`
		*NamedRef `json:"namedRef,omitempty"`
		Own       string
	}
	embedsHidden struct {
		hidden
		small //nolint:unused // not a member: that is its purpose
		Own   string
	}
	embedsShown struct {
		shown `json:"shown"`
		Own   string
	}
	embedsWord struct {
		Word
		Own string
	}
	embedsInterface struct {
		Sized fmt.Stringer `json:"sized,omitempty"`
		fmt.Stringer
	}
	// embedsLost has fields that a decoder cannot set.
	embedsLost struct {
		*lost
		First string `json:"first"`
	}
)

type (
	// Common is a plain struct. Some other embedded types are unexported, because decoders treat those differently.
	Common struct {
		Replicas *int32   `json:"replicas,omitempty"`
		Paused   bool     `json:"paused,omitempty"`
		Tags     []string `json:"tags,omitempty"`
	}
	// Shared has a field name that other structs have too.
	Shared struct {
		Name string `json:"name"`
		Item *part  `json:"n0"`
		Once string
	}
	// Extra itself embeds a pointer.
	Extra struct {
		*Deep
		More map[string]string `json:"more,omitempty"`
	}
	// Deep is embedded through two pointers.
	Deep struct{ Depth, Width int }
	// Named is embedded by a field whose tag has a name.
	Named struct{ A, B string }
	// NamedRef is embedded as a pointer, by a field whose tag has a name.
	NamedRef struct{ A, B string }
	hidden   struct {
		Visible string `json:"visible"`
		secret  int    //nolint:unused // that nothing sets it is its purpose
	}
	shown struct{ Inside int }
	// Word is not a struct, so embedding it adds a member with its name.
	Word string
	// Words is not a struct either.
	Words []string
	small int //nolint:unused // embedded where it must not count
)

type lost struct {
	Found string `json:"found,omitempty"`
}

// shadows has hidden fields: an outer field hides an embedded field, a tagged field hides an untagged
// field, and two equal fields hide each other.
type shadows struct {
	Left
	*Right
	Name  string `json:"name"`
	Third int    `json:"Twice"`
	Twice int    `json:"third"`
}

type (
	// Left comes first and is embedded by value.
	Left struct {
		Name  int     `json:"name"`
		Both  string  `json:"both"`
		Tag   string  `json:"tag"`
		Outer *string `json:"outer"`
		Once  string  `json:"once"`
		Case  string  `json:"case"`
	}
	// Right has field names of Left and embeds another struct.
	Right struct {
		Name string   `json:"name"`
		Both []string `json:"both"`
		Tag  int
		Case string `json:"CASE"`
		Deeper
	}
	// Deeper is embedded in Right.
	Deeper struct {
		Outer int    `json:"outer"`
		Once  int    `json:"once"`
		Alone string `json:"alone"`
	}
)

// diamond embeds Base through two structs at the same depth, so the fields of Base hide each other.
type diamond struct {
	West
	South
	Own string
}

// tagWins has a name twice at one depth. The field with the tag wins.
type tagWins struct {
	ByTag
	ByName
}

type (
	// ByTag sets the name in a tag.
	ByTag struct {
		N string `json:"Name"`
	}
	// ByName has the same name as a field name.
	ByName struct {
		Name int
		Own  string
	}
	// South embeds Base.
	South struct{ Base }
	// West embeds Base too.
	West struct{ Base }
	// Base is embedded by South and West.
	Base struct {
		Once string
		Last int
	}
)

type loop struct {
	*Loop
	X int
}

// Loop embeds a pointer to itself.
type Loop struct {
	*Loop
	Y int
}

// promoted has the decoding method of an embedded struct, so its other field is never set.
type promoted struct {
	metav1.Time
	Other string `json:"other"`
}

type promotedText struct {
	textKey
	Other string `json:"other"`
}

// nameless has fields of unnamed struct types with a promoted decoding method. encoding/json calls it only through a
// pointer.
type nameless struct {
	Field   struct{ metav1.Time }          `json:"field"`
	Ref     *struct{ metav1.Time }         `json:"ref,omitempty"`
	List    []struct{ textKey }            `json:"list,omitempty"`
	Map     map[string]struct{ jsonCalls } `json:"map,omitempty"`
	RefList []*struct{ second }            `json:"refList,omitempty"`
	More    struct {
		metav1.Duration
		X int
	} `json:"more"`
}

// ambiguous embeds two types that each have a decoding method, so neither method is promoted.
type ambiguous struct {
	metav1.Time       `json:"time"`
	resource.Quantity `json:"size"`
	Other             string `json:"other"`
}

type tree struct {
	Name   string          `json:"name,omitempty"`
	Left   *tree           `json:"left,omitempty"`
	Kids   []tree          `json:"kids,omitempty"`
	ByName map[string]tree `json:"byName,omitempty"`
	Pair   [2]*tree        `json:"pair,omitzero"`
}

type ping struct {
	Pong *pong  `json:"pong,omitempty"`
	Name string `json:"name"`
}

type pong struct {
	Pings []ping           `json:"pings,omitempty"`
	Named map[string]*ping `json:"named,omitempty"`
}

type nest []nest

type nestMap map[string]nestMap

// names has similar field names, such as names of one length or with a common beginning or end, and unusual names.
type names struct {
	A  int  `json:"terminationGracePeriodSeconds"`
	B  int  `json:"terminationGracePexiodSeconds"`
	C  int  `json:"terminationGracePeriodMinutes"`
	D  int  `json:"terminatioxGracePeriodSeconds"`
	E  int  `json:"name"`
	F  int  `json:"Name"`
	G  int  `json:"NAME"`
	H  int  `json:"nam"`
	I  int  `json:"namename"`
	J  int  `json:"namename1"`
	K  int  `json:"é"`
	L  int  `json:"$ref"`
	M  int  `json:"a b/c~d"`
	N  int  `json:"日本語の名前です"`
	O  int  `json:"<&>"`
	P  int  `json:"kelvin"` // U+212A folds to k
	Q  int  `json:"slow"`   // U+017F folds to s
	É  *int `json:",omitempty"`
	R  any
	Ss any
}

// podView is a projection of a Pod.
type podView struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Containers []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"containers"`
		Volumes []map[string]json.RawMessage `json:"volumes"`
	} `json:"spec"`
}

// textKey decodes itself from text, as a value and as the key of a map.
type textKey struct{ Group, Item string }

func (k textKey) MarshalText() ([]byte, error) { return []byte(k.Group + "/" + k.Item), nil }

func (k *textKey) UnmarshalText(text []byte) (err error) {
	var ok bool
	if k.Group, k.Item, ok = strings.Cut(string(text), "/"); !ok {
		err = fmt.Errorf("no slash in %q", text)
	}
	return err
}

// textString is a string type that decodes itself from text.
type textString string

func (s *textString) UnmarshalText(text []byte) error {
	*s = textString(strings.ToUpper(string(text)))
	return nil
}

// second decodes itself from a number or a string, as many custom types do.
type second int64

func (s *second) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(bytes.Trim(data, `"`), (*int64)(s))
}

// both has UnmarshalJSON and UnmarshalText. Decoders call only UnmarshalJSON.
type both struct{ By, Text string }

func (b *both) UnmarshalJSON(data []byte) error { b.By, b.Text = "json", string(data); return nil }
func (b *both) UnmarshalText(data []byte) error { b.By, b.Text = "text", string(data); return nil }

// jsonCalls records each call of UnmarshalJSON with its argument, including null.
type jsonCalls []string

func (j *jsonCalls) UnmarshalJSON(data []byte) error { *j = append(*j, string(data)); return nil }

// textCalls records each call of UnmarshalText.
type textCalls []string

func (h *textCalls) UnmarshalText(text []byte) error { *h = append(*h, string(text)); return nil }

// valueReceiver has an UnmarshalJSON method with a value receiver. The method can reject a value, but cannot store it.
type valueReceiver string

func (v valueReceiver) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte("9")) {
		return fmt.Errorf("%q holds a nine", data)
	}
	return nil
}

// defaulted sets a default and then decodes the rest like an ordinary struct.
type defaulted struct {
	Replicas int    `json:"replicas"`
	Name     string `json:"name"`
}

func (d *defaulted) UnmarshalJSON(data []byte) error {
	type plain defaulted
	fresh := plain{Replicas: 1}
	if err := json.Unmarshal(data, &fresh); err != nil {
		return err
	}
	*d = defaulted(fresh)
	return nil
}

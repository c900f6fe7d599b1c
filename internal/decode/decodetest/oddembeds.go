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
	// embedsShadowed hides members of what it embeds, before and after.
	embedsShadowed struct {
		Own    string               `json:"name"`
		Left                        // its name is hidden, and so is outer of the next
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
	embedsWordRef struct {
		*Word
		Words
	}
	embedsInterface struct {
		Sized fmt.Stringer `json:"sized,omitempty"`
		fmt.Stringer
	}
	// embedsLost has members that cannot be set.
	embedsLost struct {
		*lost
		First string `json:"first"`
	}
)

type (
	// Common is a plain struct. Types to embed are exported, or not, because that matters.
	Common struct {
		Replicas *int32   `json:"replicas,omitempty"`
		Paused   bool     `json:"paused,omitempty"`
		Tags     []string `json:"tags,omitempty"`
	}
	// Shared has a name that others have too.
	Shared struct {
		Name string `json:"name"`
		Item *part  `json:"n0"`
		Once string
	}
	// Extra holds an embedded pointer itself.
	Extra struct {
		*Deep
		More map[string]string `json:"more,omitempty"`
	}
	// Deep is two pointers away.
	Deep struct{ Depth, Width int }
	// Named is embedded under a name.
	Named struct{ A, B string }
	// NamedRef is so too, by a pointer.
	NamedRef struct{ A, B string }
	hidden   struct {
		Visible string `json:"visible"`
		secret  int    //nolint:unused // that nothing sets it is its purpose
	}
	shown struct{ Inside int }
	// Word is not a struct, so its name is that of a member.
	Word string
	// Words is neither.
	Words []string
	small int //nolint:unused // embedded where it must not count
)

type lost struct {
	Found string `json:"found,omitempty"`
}

// shadows: the outer name wins, then the tagged one, and two equals cancel each other out.
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
	// Right shares names with Left and has more below.
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

// diamond reaches Base on two ways of one length, so its members cancel each other out.
type diamond struct {
	West
	East
	Own string
}

// diamondValue does so without a pointer, so that nothing else is odd.
type diamondValue struct {
	West
	South
	Own string
}

// tagWins has a name twice at one depth, once by a tag: that one counts.
type tagWins struct {
	ByTag
	ByName
}

type (
	// ByTag names its member by a tag.
	ByTag struct {
		N string `json:"Name"`
	}
	// ByName has the same name from its field.
	ByName struct {
		Name int
		Own  string
	}
	// South is one way to Base.
	South struct{ Base }
	// West is another.
	West struct{ Base }
	// East is one with a pointer.
	East struct{ *Base }
	// Base is what they lead to.
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

// promoted decodes by a method of what it embeds; the other field is never set.
type promoted struct {
	metav1.Time
	Other string `json:"other"`
}

type promotedText struct {
	textKey
	Other string `json:"other"`
}

// nameless structs have such methods too, which only count where there is a pointer.
type nameless struct {
	Field   struct{ metav1.Time }        `json:"field"`
	Ref     *struct{ metav1.Time }       `json:"ref,omitempty"`
	List    []struct{ textKey }          `json:"list,omitempty"`
	Map     map[string]struct{ journal } `json:"map,omitempty"`
	RefList []*struct{ second }          `json:"refList,omitempty"`
	More    struct {
		metav1.Duration
		X int
	} `json:"more"`
}

// ambiguous has two such methods, which is none.
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

// names are alike in their ends or their length, or are unusual.
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

// podImages, podMeta and podPointers read a part of a Pod.
type podImages struct {
	Spec struct {
		Containers []struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		} `json:"containers"`
		InitContainers []struct {
			Image string `json:"image"`
		} `json:"initContainers"`
	} `json:"spec"`
}

type podMeta struct {
	metav1.ObjectMeta `json:"metadata"`
}

type podPointers struct {
	Metadata *struct {
		Labels *map[string]*string `json:"labels"`
	} `json:"metadata"`
	Spec map[string]json.RawMessage `json:"spec"`
}

// textKey reads itself from text, as a value and as the key of a map.
type textKey struct{ Group, Item string }

func (k textKey) MarshalText() ([]byte, error) { return []byte(k.Group + "/" + k.Item), nil }

func (k *textKey) UnmarshalText(text []byte) (err error) {
	var ok bool
	if k.Group, k.Item, ok = strings.Cut(string(text), "/"); !ok {
		err = fmt.Errorf("no slash in %q", text)
	}
	return err
}

// shout is a string and yet reads itself from text.
type shout string

func (s *shout) UnmarshalText(text []byte) error {
	*s = shout(strings.ToUpper(string(text)))
	return nil
}

// second reads a number or a string, as many custom types do.
type second int64

func (s *second) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(bytes.Trim(data, `"`), (*int64)(s))
}

// both has both methods: that for JSON counts.
type both struct{ By, Text string }

func (b *both) UnmarshalJSON(data []byte) error { b.By, b.Text = "json", string(data); return nil }
func (b *both) UnmarshalText(data []byte) error { b.By, b.Text = "text", string(data); return nil }

// journal keeps what it was called with, call by call, null too.
type journal []string

func (j *journal) UnmarshalJSON(data []byte) error { *j = append(*j, string(data)); return nil }

// heard does so for text.
type heard []string

func (h *heard) UnmarshalText(text []byte) error { *h = append(*h, string(text)); return nil }

// valueReceiver can refuse, not change.
type valueReceiver string

func (v valueReceiver) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte("9")) {
		return fmt.Errorf("%q holds a nine", data)
	}
	return nil
}

// defaulted sets a default and then reads the rest as other structs do, but of its own accord.
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

// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"encoding/json"
	"fmt"
)

// elementStep is the JSON form of a step to an element. A step to a member is a string, its name.
type elementStep struct {
	Key string `json:"element"`
	Nth int    `json:"nth,omitempty"`
}

// MarshalJSON returns the steps: ["spec","containers",{"element":"name=web"},"image"].
func (p Path) MarshalJSON() ([]byte, error) {
	steps := make([]any, len(p))
	for i, s := range p {
		if steps[i] = s.Name; s.Element {
			steps[i] = elementStep{s.Key, s.Nth}
		}
	}
	return json.Marshal(steps)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Path) UnmarshalJSON(text []byte) error {
	var steps []json.RawMessage
	if err := json.Unmarshal(text, &steps); err != nil {
		return err
	}
	*p = make(Path, len(steps))
	for i, raw := range steps {
		s := &(*p)[i]
		if json.Unmarshal(raw, &s.Name) == nil {
			continue
		}
		var element elementStep
		if err := json.Unmarshal(raw, &element); err != nil {
			return fmt.Errorf("step %d of a path is neither a name nor an element: %s", i+1, raw)
		}
		s.Key, s.Nth, s.Element = element.Key, element.Nth, true
	}
	return nil
}

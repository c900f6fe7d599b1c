// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
)

// Choices is a source of random numbers that a fuzzer controls. Two bytes of the input decide each number. After the
// end of the input, the numbers follow from the seed.
type Choices struct {
	input []byte
	more  *rand.PCG
}

// NewChoices returns a source that reads its numbers from the input. After the end of the input, the numbers follow
// from the seed.
func NewChoices(input []byte, seed int64) *Choices {
	return &Choices{input: input, more: rand.NewPCG(uint64(seed), 0)}
}

// Next returns the next byte of the input. After the end of the input, it returns a pseudo-random byte from the seed.
func (c *Choices) Next() byte {
	if len(c.input) == 0 {
		return byte(c.more.Uint64())
	}
	b := c.input[0]
	c.input = c.input[1:]
	return b
}

// Uint64 implements rand.Source. rand.IntN reads the lowest bits for a power of two and the highest bits otherwise, so
// Uint64 writes one byte of the input to both. It writes another byte where rand.Float64 reads it.
func (c *Choices) Uint64() uint64 {
	n := c.more.Uint64()
	if len(c.input) == 0 {
		return n
	}
	const whole, fraction = 56, 45
	n &^= 0xff<<whole | 0xff<<fraction | 0xff
	b := uint64(c.Next())
	return n | b<<whole | b | uint64(c.Next())<<fraction
}

// shape converts a choice to an index for [Inputs.object]: the index of an unchanged sample, of the object with every
// kind of field, or of a random object.
func (in *Inputs) shape(choice int) (i int) {
	n := max(len(in.samples), 1)
	switch choice % 8 {
	case 0:
		return choice / 8 % n
	case 1:
		return n
	}
	return n + 1 + choice/8
}

// One generates one object and checks the laws on it, for a fuzzer. shape selects how the object is generated, and
// source supplies the random choices.
func (r *Run) One(source *Choices, shape int) {
	random, i := rand.New(source), r.inputs.shape(shape)
	doc := r.inputs.object(random, i)
	x, ok := r.Valid(doc)
	if !ok {
		return
	}
	out := r.CountObject(x)
	if r.one(random, i, x, out, nil); out.OK() && !r.Impure {
		r.manifestAgain(doc)
		r.replaced(doc)
		r.tryAfterCreation(random, i, x, out.After)
	}
}

package arith

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MaxFactor is the most attempts that a layer may make, MaxLayers how many there
// may be.
const (
	MaxFactor = 1000
	MaxLayers = 16
)

// Layer is something that retries, called by the one before it.
type Layer struct {
	Name     string // "" = by its place
	Attempts uint64 // the first send included
}

// LayerCalls is a layer and how often what is under it is called at worst, for one
// call of the outermost.
type LayerCalls struct {
	Name     string `json:"name"`
	Attempts uint64 `json:"attempts"`
	Calls    uint64 `json:"calls"`
}

// ParseLayer reads "sdk=3".
func ParseLayer(s string) (Layer, error) {
	name, number, ok := strings.Cut(s, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return Layer{}, errors.New("must be NAME=ATTEMPTS, such as sdk=3")
	}
	n, err := parseFactor(number)
	return Layer{name, n}, err
}

// ParseFactors reads "3x4", "3×4", "3*4" or "3": layers without names, the outermost
// first.
func ParseFactors(s string) ([]Layer, error) {
	var out []Layer
	for f := range strings.SplitSeq(strings.NewReplacer("×", "x", "*", "x", "X", "x").Replace(s), "x") {
		n, err := parseFactor(f)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", s, err)
		}
		out = append(out, Layer{Attempts: n})
	}
	return out, nil
}

func parseFactor(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 1 || n > MaxFactor {
		return 0, fmt.Errorf("attempts of a layer must be within 1..%d, got %.20q", MaxFactor, s)
	}
	return n, nil
}

// Layers multiplies: n layers that each make so many attempts make so many calls
// at worst, when every one of them fails. The last one's Calls is the product.
func Layers(layers []Layer) ([]LayerCalls, error) {
	if n := len(layers); n < 1 || n > MaxLayers {
		return nil, fmt.Errorf("there must be 1..%d layers, got %d", MaxLayers, n)
	}
	out := make([]LayerCalls, len(layers))
	product := uint64(1)
	for i, l := range layers {
		hi, lo := bits.Mul64(product, l.Attempts)
		switch {
		case l.Attempts < 1 || l.Attempts > MaxFactor:
			return nil, fmt.Errorf("attempts of a layer must be within 1..%d, got %d", MaxFactor, l.Attempts)
		case hi != 0:
			return nil, errors.New("the layers multiply beyond 2^64 calls")
		}
		product = lo
		if l.Name == "" {
			l.Name = fmt.Sprintf("layer %d", i+1)
		}
		out[i] = LayerCalls{l.Name, l.Attempts, product}
	}
	return out, nil
}

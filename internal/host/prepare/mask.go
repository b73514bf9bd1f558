// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"math/big"
	"strings"
)

// maskWithout is maskText less the CPUs to keep free; the others if none is left. The
// result has the form in which the kernel wrote the mask, so that both can be compared.
func maskWithout(now string, isolate, others []int) (string, error) {
	if !maskText.MatchString(now) {
		return "", fmt.Errorf("%q is not a mask of CPUs", now)
	}
	bits, _ := new(big.Int).SetString(strings.ReplaceAll(now, ",", ""), 16)
	for _, cpu := range isolate {
		bits.SetBit(bits, cpu, 0)
	}
	if bits.Sign() == 0 {
		for _, cpu := range others {
			bits.SetBit(bits, cpu, 1)
		}
	}
	return formatMask(bits, now), nil
}

// formatMask writes groups of 32 bits, with as many digits as the model.
func formatMask(bits *big.Int, model string) string {
	digits := len(strings.ReplaceAll(model, ",", ""))
	text := fmt.Sprintf("%0*x", digits, bits)
	var groups []string
	for len(text) > 8 {
		groups = append([]string{text[len(text)-8:]}, groups...)
		text = text[:len(text)-8]
	}
	return strings.Join(append([]string{text}, groups...), ",")
}

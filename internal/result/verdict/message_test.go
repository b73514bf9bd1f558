// SPDX-License-Identifier: Apache-2.0

package verdict

import "testing"

func TestMessagesComeBack(t *testing.T) {
	v := Verdict{
		Required: Figure{Text: "≤ 1.5ms at p99"}, Measured: figure(1e6, UnitTime, "1ms"), Bound: Figure{Text: "< 2ms"},
		Basis: "the functions' own packets, one way", Verdict: NotMeasurable, Reason: "too few: 3 of 9; more are needed", Needs: "9 s",
	}
	m := MessageOf(v)
	for _, at := range []string{"", "du.f1u"} {
		m.At = at
		if got := ReadMessage(m.String()); got != m {
			t.Errorf("%s\nis read as %+v\nwant       %+v", m, got, m)
		}
	}
	const want = "required: ≤ 1.5ms at p99; measured: 1ms; bound: < 2ms; basis: the functions' own packets, one way; " +
		"because: too few: 3 of 9; more are needed; needs: 9 s"
	m.At = ""
	if m.String() != want {
		t.Errorf("got  %s\nwant %s", m, want)
	}
	v.Verdict, v.Needs = Met, ""
	if m := MessageOf(v); m.Because != "" || m.Measured != "1ms" || m.Bound != "< 2ms" {
		t.Errorf("of a met requirement: %+v", m)
	}
	v.Measured = none()
	if m := MessageOf(v); m.String() != "required: ≤ 1.5ms at p99" {
		t.Errorf("without a figure: %s", m)
	}
}

func TestOtherTextsAreReasons(t *testing.T) {
	for _, text := range []string{"", "du.f1u: no figures yet", "what is required: nothing"} {
		if got := ReadMessage(text); got != (Message{Because: text}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := ReadMessage("du.f1u: required: 1ms; because: no traffic"); got != (Message{At: "du.f1u", Required: "1ms", Because: "no traffic"}) {
		t.Errorf("%+v", got)
	}
}

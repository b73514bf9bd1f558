// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a records file; see Read.
func ReadFile(path string) (trials []Trial, warnings []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read records: %w", err)
	}
	defer f.Close()
	trials, warnings, err = Read(f)
	for i := range warnings {
		warnings[i] = path + ": " + warnings[i]
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return trials, warnings, nil
}

// Read reads records, one a line. A crash or power cut may tear a last line without
// newline: if that is not a whole record, it is left out, with a warning. Any other
// line that is not a record is an error that names it.
func Read(r io.Reader) (trials []Trial, warnings []string, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		line, torn, err := readLine(br)
		if errors.Is(err, io.EOF) {
			return trials, warnings, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		t, err := decode(line)
		switch {
		case err == nil:
			trials = append(trials, t)
		case torn:
			warnings = append(warnings, fmt.Sprintf("line %d is incomplete and left out: the run ended while writing it", number))
		default:
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
}

// readLine returns the next line without its newline; torn says that it had none.
// io.EOF means no further line.
func readLine(br *bufio.Reader) (line []byte, torn bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > MaxLine {
			return nil, false, fmt.Errorf("longer than %d bytes: not a record", MaxLine)
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), false, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, true, nil
		default:
			return nil, false, err
		}
	}
}

func decode(line []byte) (Trial, error) {
	var t Trial
	if err := json.Unmarshal(line, &t); err != nil {
		return t, fmt.Errorf("not a record: %w", err)
	}
	if t.Schema != Schema {
		return t, fmt.Errorf("record of schema %d; this program reads schema %d: use the dray version that wrote it, or measure again", t.Schema, Schema)
	}
	return t, t.check()
}

// check refuses impossible values, so that statistics need not.
func (t *Trial) check() error {
	if t.Duration < 0 {
		return fmt.Errorf("trial %s: negative duration", t.ID)
	}
	if l := t.Latency; l != nil {
		if err := l.Histogram.Check(); err != nil {
			return fmt.Errorf("trial %s: %w", t.ID, err)
		}
		if l.MinRTT < 0 || l.Stalled < 0 {
			return fmt.Errorf("trial %s: negative time", t.ID)
		}
	}
	if err := errors.Join(t.OneWay.check(), t.Bench.check(), t.Experiment.check()); err != nil {
		return fmt.Errorf("trial %s: %w", t.ID, err)
	}
	if d := t.Delivery; d != nil && (d.Received > d.Sent || d.Lost != d.Sent-d.Received || d.ReceiverDrops > d.Lost || d.Jitter < 0) {
		return fmt.Errorf("trial %s: %d sent, %d received and %d lost do not add up, or jitter is negative", t.ID, d.Sent, d.Received, d.Lost)
	}
	if q := t.Requests; q != nil && (q.PerSecond < 0 || q.MeanRTT < 0) {
		return fmt.Errorf("trial %s: negative request rate or time", t.ID)
	}
	return nil
}

// check refuses impossible histograms and times; nil is valid.
func (o *OneWay) check() error {
	if o == nil {
		return nil
	}
	for _, h := range []Histogram{o.Latency, o.Intended, o.Lateness, o.IPDV} {
		if err := h.Check(); err != nil {
			return err
		}
	}
	if c := o.Coarse; c != nil {
		if err := c.Least.Check(); err != nil {
			return err
		}
		if c.Min < 0 {
			return fmt.Errorf("a least one-way time of %v", c.Min)
		}
	}
	if o.Min < 0 || o.Max < o.Min {
		return fmt.Errorf("one-way times from %v to %v", o.Min, o.Max)
	}
	return nil
}

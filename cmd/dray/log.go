// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log/slog"
)

// logTo writes dray's own log: the probes, the steps and the commands that it runs.
func logTo(w io.Writer) {
	slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

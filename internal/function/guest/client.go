// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest/wire"
)

// clientFailed is the exit status of a client that could not do its work.
const clientFailed = 125

// clientOrder is a client's one argument, as JSON.
type clientOrder struct {
	Dir     string       `json:"dir"`
	Request wire.Request `json:"request"`
	Report  bool         `json:"report"` // file descriptor 3 takes a line when the program has started, or why not
}

// The reports of a client.
const (
	reportStarted = "started"
	reportFailed  = "failed: " // and the reason: the program cannot be run
	reportSilent  = "silent"   // ErrSilent
	reportError   = "error: "  // and the text: the guest or the client failed
)

// ClientCommand is a host process that represents a program in a guest. It has
// the program's standard streams and exit status, and forwards signals; if it is
// killed, so is the program.
func ClientCommand(dir string, r wire.Request) (*exec.Cmd, error) {
	return clientCommand(clientOrder{Dir: dir, Request: r})
}

func clientCommand(order clientOrder) (*exec.Cmd, error) {
	agent, err := FindAgent()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(agent, "run", string(text))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return cmd, nil
}

// ReportingCommand is ClientCommand that reports the start. After start starts the
// command, started returns nil when the program runs in the guest, or a
// *StartError if it cannot run.
func ReportingCommand(dir string, r wire.Request, start func(*exec.Cmd) error) (started func(context.Context) error, err error) {
	cmd, err := clientCommand(clientOrder{Dir: dir, Request: r, Report: true})
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{write}
	err = start(cmd)
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer read.Close()
		defer context.AfterFunc(ctx, func() { read.Close() })()
		text, err := io.ReadAll(io.LimitReader(read, 2*wire.MaxPayload))
		return parseReport(ctx, r.Argv[0], string(text), err)
	}, nil
}

func parseReport(ctx context.Context, program, text string, err error) error {
	text = strings.TrimSpace(text)
	if text == reportStarted {
		return nil
	}
	if reason, ok := strings.CutPrefix(text, reportFailed); ok {
		return &StartError{Program: program, Reason: reason}
	}
	if text == reportSilent {
		return ErrSilent
	}
	if reason, ok := strings.CutPrefix(text, reportError); ok {
		return errors.New(reason)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, fmt.Errorf("%s ended without saying whether %q runs in the guest", AgentProgram, program))
}

// Relay makes the native ports of the guest in a directory available to its programs. failed
// gets an error when they are not any more; stop ends it.
type Relay func(ctx context.Context, dir string) (failed <-chan error, stop func(), err error)

// ClientMain is `dray-guest run ORDER`. It returns the exit status. The relay runs as long
// as the program: without its ports, the program is killed.
func ClientMain(argument string, relay Relay) int {
	var order clientOrder
	if err := json.Unmarshal([]byte(argument), &order); err != nil {
		fmt.Fprintf(os.Stderr, "dray-guest: %v\n", err)
		return clientFailed
	}
	report := reporter(order.Report)
	incoming := make(chan os.Signal, 16)
	signal.Notify(incoming, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	signals := make(chan unix.Signal)
	go func() {
		for s := range incoming {
			signals <- s.(unix.Signal)
		}
	}()
	code, err := runWithPorts(order.Dir, relay, Command{
		Request: order.Request, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
		Started: func() { report(reportStarted) },
	})
	var bad *StartError
	switch {
	case err == nil:
		return code
	case errors.As(err, &bad):
		report(reportFailed + bad.Reason)
	case errors.Is(err, ErrSilent):
		report(reportSilent)
		killHung(order.Dir)
	default:
		report(reportError + err.Error())
	}
	fmt.Fprintf(os.Stderr, "dray-guest: %v\n", err)
	return clientFailed
}

// runWithPorts runs a program while the relay serves the guest's ports.
func runWithPorts(dir string, relay Relay, command Command) (int, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	failed, stop, err := relay(ctx, dir)
	if err != nil {
		return 0, fmt.Errorf("ports of the guest: %w", err)
	}
	defer stop()
	go func() {
		select {
		case err := <-failed:
			cancel(fmt.Errorf("ports of the guest: %w", err))
		case <-ctx.Done():
		}
	}()
	code, err := Run(ctx, dir, command)
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
	}
	return code, err
}

// killHung ends the guest in dir, which would hang for as long as its chain is up.
// The next start boots another.
func killHung(dir string) {
	if info, err := ReadInfo(dir); err == nil {
		info.Process.Kill()
	}
}

// reporter writes one line on file descriptor 3, if wanted.
func reporter(wanted bool) func(string) {
	if !wanted {
		return func(string) {}
	}
	f := os.NewFile(3, "report")
	unix.CloseOnExec(3)
	return func(text string) {
		fmt.Fprintln(f, text)
		f.Close()
	}
}

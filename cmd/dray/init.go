// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/spec/chain"
)

//go:embed starter.yaml.tmpl
var starterTemplate string

// starter fills the template.
type starter struct {
	A, B, Port                  string
	Face, FaceText              string
	Runtime, RuntimeText, Image string
	SendCommand, ReceiveCommand string
}

// The starter's comments on its faces and runtimes.
var (
	faceTexts = map[string]string{
		string(chain.FaceNetdev): "a network interface inside the function",
		string(chain.FaceNative): "a port that the function opens with libdray",
		string(chain.FaceDPDK):   "a port of the function's DPDK; the EAL arguments replace $(DRAY_EAL)",
	}
	runtimeTexts = map[string]string{
		string(chain.RuntimeRunc):    "a container on this host's root file system, read-only",
		string(chain.RuntimeProcess): "a process with its own network namespace and cgroup",
		string(chain.RuntimeDocker):  "a Docker container",
		string(chain.RuntimeVM):      "a virtual machine",
	}
)

// testpmd is DPDK's own application for dpdk ports.
const testpmd = "[dpdk-testpmd, $(DRAY_EAL), --, --forward-mode=%s, --stats-period=1, --total-num-mbufs=8192]"

func newStarter(face, runtime string) (starter, error) {
	s := starter{
		A: "du", B: "cu-up", Port: "f1u", Face: face, FaceText: faceTexts[face], Runtime: runtime, RuntimeText: runtimeTexts[runtime],
		SendCommand: "[sleep, infinity]", ReceiveCommand: "[sleep, infinity]",
	}
	switch {
	case s.FaceText == "":
		return s, usageError("--face %s: write netdev, native or dpdk", face)
	case s.RuntimeText == "":
		return s, usageError("--runtime %s: write runc, process, docker or vm", runtime)
	}
	if runtime == string(chain.RuntimeDocker) {
		s.Image = "debian:12"
	}
	if face == string(chain.FaceDPDK) {
		s.SendCommand, s.ReceiveCommand = fmt.Sprintf(testpmd, "txonly"), fmt.Sprintf(testpmd, "rxonly")
	}
	return s, nil
}

func (a *app) initCommand() *cobra.Command {
	face, runtime := string(chain.FaceNetdev), string(chain.RuntimeRunc)
	cmd := &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Write a commented chain file to start from",
		Long:    "Write a commented chain of two functions and one link, which `dray plan` accepts, to FILE (chain.yaml). An\nexisting file is never overwritten; - writes to standard output.",
		Example: "  dray init\n  dray init - --face native | dray plan -",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, argv []string) error {
			file := "chain.yaml"
			if len(argv) == 1 {
				file = argv[0]
			}
			s, err := newStarter(face, runtime)
			if err != nil {
				return err
			}
			return a.writeStarter(file, s)
		},
	}
	cmd.Flags().StringVar(&face, "face", face, "how the functions see their ports: netdev, native or dpdk")
	cmd.Flags().StringVar(&runtime, "runtime", runtime, "how the functions run: runc, process, docker or vm")
	return cmd
}

func (a *app) writeStarter(file string, s starter) error {
	t, err := template.New("starter").Parse(starterTemplate)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, s); err != nil {
		return err
	}
	if file == "-" {
		_, err := a.out.Write(text.Bytes())
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists: name another file, or remove it", file)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(text.Bytes()); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(schemaStarter, map[string]any{"file": file})
	}
	fmt.Fprintf(a.out, "wrote %s; `dray plan %[1]s` shows what it would do\n", file)
	return nil
}

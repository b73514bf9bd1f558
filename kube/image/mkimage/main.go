// SPDX-License-Identifier: Apache-2.0

// Command mkimage writes a container image of one layer from a folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/drayage/dray/kube/image"
)

const usage = `usage: mkimage [option...] NAME FOLDER ARCHIVE [ENTRYPOINT [ARGUMENT...]]

It writes ARCHIVE, a container image called NAME (dray.local/pause:1) whose only layer is the content of
FOLDER, for "ctr images import", "docker load" and the like. The same folder gives the same bytes.
SOURCE_DATE_EPOCH is the time of every file, in seconds since 1970 (0 if it is not set).

Exit status: 0 written, 1 failed, 2 wrong usage.

`

// list is an option that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() {
	img := image.Image{}
	env := list{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	flag.StringVar(&img.Architecture, "arch", runtime.GOARCH, "`architecture` of the programs in the folder")
	flag.StringVar(&img.Config.User, "user", "", "`user` of the image's processes, as UID[:GID]")
	flag.Var(&env, "env", "a `NAME=VALUE` of the environment; may be given several times")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() < 3 {
		flag.Usage()
		os.Exit(2)
	}
	img.Name, img.Root = flag.Arg(0), flag.Arg(1)
	img.Config.Env, img.Config.Entrypoint = env, flag.Args()[3:]
	if err := run(img, flag.Arg(2)); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

// run writes the archive under another name first, so that no reader sees half of one.
func run(img image.Image, archive string) error {
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		img.Created = time.Unix(seconds, 0)
	}
	file, err := os.CreateTemp(filepath.Dir(archive), ".mkimage-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename, as it should
	defer file.Close()
	if err := image.Write(file, img); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), archive)
}

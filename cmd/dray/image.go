// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/images"
	"github.com/drayage/dray/internal/function/image"
	"github.com/drayage/dray/internal/spec/layout"
)

const imageLong = `Build an image for functions: a root file system with Debian's smallest base and the recipe's packages.
Packages come from the mirror that apt uses on this host. Use the printed folder as the rootfs of a function
with runtime runc; --tar writes the same image for docker import. An image that exists is reused.
Without a name, list the recipes.

The images ran and fronthaul are built from sources: DRAY_RAN_SOURCE names a folder or tar file of srsRAN 4G,
and DRAY_OCUDU_SOURCE one of OCUDU. If it is not set, git fetches the recipe's commit from the internet.`

func (a *app) imageCommand() *cobra.Command {
	var tar string
	var afresh bool
	cmd := &cobra.Command{
		Use:     "image [NAME]",
		Short:   "Build a function's root file system from Debian packages",
		Long:    imageLong,
		Example: "  dray image\n  dray image iperf\n  dray image dpdk --tar dpdk.tar && docker import dpdk.tar dray-dpdk",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) == 1 {
				return a.buildImage(cmd.Context(), argv[0], tar, afresh)
			}
			if tar != "" || afresh {
				return usageError("--tar and --afresh apply to one image: name it")
			}
			return a.listImages()
		},
	}
	cmd.Flags().StringVar(&tar, "tar", "", "also write the image to this file, for docker import")
	cmd.Flags().BoolVar(&afresh, "afresh", false, "build the image again even if it exists")
	return cmd
}

// imageLine is an image in the output for programs.
type imageLine struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Rootfs string  `json:"rootfs,omitempty"` // empty: it is not built
	Suite  string  `json:"suite,omitempty"`
	Source string  `json:"source,omitempty"` // the sources that it was built from
	Size   int64   `json:"size,omitempty"`   // bytes
	Built  string  `json:"built,omitempty"`  // when its build began, RFC 3339
	Took   float64 `json:"took,omitempty"`   // s
	Tar    string  `json:"tar,omitempty"`    // if it was asked for
	SHA256 string  `json:"sha256,omitempty"` // of the tar
}

func lineOf(r *image.Recipe, i *image.Image) imageLine {
	line := imageLine{Name: r.Name, Title: r.Title}
	if i != nil {
		line.Rootfs, line.Suite, line.Source, line.Size, line.Built, line.Took = i.Rootfs, i.Suite, i.Source, i.Size, i.Built.UTC().Format(time.RFC3339), i.Took.Seconds()
	}
	return line
}

func (a *app) buildImage(ctx context.Context, name, tar string, afresh bool) error {
	recipe, err := image.Find(name)
	if err != nil {
		return usageError("%v", err)
	}
	i, err := image.Build(ctx, recipe, afresh, func(text string) { a.progress("%s", text) })
	a.endProgress()
	if err != nil {
		return err
	}
	line := lineOf(recipe, i)
	if tar != "" {
		if line.SHA256, err = i.ArchiveFile(ctx, tar); err != nil {
			return err
		}
		line.Tar = tar
		a.progress("%s: SHA-256 %s", tar, line.SHA256)
	}
	if a.json {
		return a.printJSON(schemaImage, line)
	}
	_, err = fmt.Fprintln(a.out, i.Rootfs)
	return err
}

func (a *app) listImages() error {
	var lines []imageLine
	t := layout.Table{Head: []string{"IMAGE", "WHAT", "BUILT"}}
	for _, name := range images.Names() {
		r, err := image.Find(name)
		if err != nil {
			return err
		}
		line := lineOf(r, image.Ready(name))
		lines = append(lines, line)
		t.Add(name, r.Title, imageState(r, line))
	}
	if a.json {
		return a.printJSON(schemaImages, map[string]any{"images": lines})
	}
	return a.printText(t.Write)
}

// imageState says where an image is, or what its build takes.
func imageState(r *image.Recipe, line imageLine) string {
	switch {
	case line.Rootfs != "":
		return fmt.Sprintf("%.1f MB, %s", float64(line.Size)/1e6, line.Rootfs)
	case r.Source != nil:
		return fmt.Sprintf("no; takes about %v; %s", r.Takes, r.Source.Needs())
	}
	return fmt.Sprintf("no; takes about %v", r.Takes)
}

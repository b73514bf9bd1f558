// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/host"
)

// buildScript builds a recipe's sources. It runs in the folder buildFolder of a root
// file system of its own, which has the recipe's packages and build packages:
//
//	source  the sources
//	recipe  the recipe's folder
//	cache   what it keeps here is there again in the next build
//	out     what it makes here goes to /usr/local in the image
const (
	buildScript = "build.sh"
	buildFolder = "/build"
)

// builder is the user that builds the sources. No process of the host has this user,
// which is beyond those of Debian's accounts and their user namespaces.
const builder = 1990000000

// cacheSuffix follows the image's name in the folder that keeps a build's cache.
const cacheSuffix = ".cache"

// results fills the folder with what is built from the sources, and returns their
// identity. The existing image's results are used if the inputs are the same.
func (s *sources) results(ctx context.Context, r *Recipe, in *inputs, afresh bool, folder string, say func(string)) (source string, err error) {
	old := Ready(r.Name)
	if !afresh && old != nil && old.Results == in.results && (in.source == "" || in.source == old.Source) {
		kept := filepath.Join(Folder(), r.Name, resultsName)
		if _, err := os.Stat(kept); err == nil {
			say(fmt.Sprintf("image %s: its sources were built before", r.Name))
			return old.Source, copyTree(kept, folder)
		}
	}
	return s.compile(ctx, r, in.source, folder, say)
}

// compile builds the sources in a root file system of their own, which it removes.
func (s *sources) compile(ctx context.Context, r *Recipe, named, folder string, say func(string)) (source string, err error) {
	tree, root := folder+".source", folder+".root"
	source, err = r.Source.get(ctx, named, tree, func(text string) { say("image " + r.Name + ": " + text) })
	if err != nil {
		return "", err
	}
	say(fmt.Sprintf("image %s: building %s in a root file system of its own, with %d more packages", r.Name, r.Source.Repository, len(r.BuildPackages)))
	if err := s.install(ctx, slices.Concat(r.Packages, r.BuildPackages), nil, root); err != nil {
		return "", err
	}
	dir := filepath.Join(root, buildFolder)
	cache := filepath.Join(Folder(), r.Name+cacheSuffix)
	if err := prepareBuild(r.Files, tree, cache, dir); err != nil {
		return "", err
	}
	err = runBuild(ctx, r.Name, root, say)
	if err = errors.Join(err, os.Rename(filepath.Join(dir, "cache"), cache)); err != nil {
		return "", err
	}
	if err := copyTree(filepath.Join(dir, "out"), folder); err != nil {
		return "", err
	}
	return source, remove(root)
}

// prepareBuild makes the folder in which the build script runs.
func prepareBuild(files map[string][]byte, tree, cache, dir string) error {
	for _, folder := range []string{dir, filepath.Join(dir, "out"), cache} {
		if err := host.MakeDirs(folder, 0o755); err != nil {
			return err
		}
	}
	if err := writeFiles(files, filepath.Join(dir, "recipe")); err != nil {
		return err
	}
	return errors.Join(os.Rename(tree, filepath.Join(dir, "source")), os.Rename(cache, filepath.Join(dir, "cache")), giveAway(dir, builder))
}

// buildCommand is the build script as a user without privileges, in namespaces that
// end with it, and without a network. The kernel forgets, when a process changes its
// user, that it is to end with its parent: setpriv says so again.
func buildCommand(root string) []string {
	id := strconv.Itoa(builder)
	return []string{
		"unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--root=" + root, "--wd=" + buildFolder, "--mount-proc", "--",
		"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--no-new-privs", "--pdeathsig", "KILL", "--",
		"sh", filepath.Join(buildFolder, "recipe", buildScript), "source", "out",
	}
}

// runBuild runs the build script. Its output is in a log file while it runs, and
// afterwards if it failed.
func runBuild(ctx context.Context, name, root string, say func(string)) (err error) {
	date, err := epoch()
	if err != nil {
		return err
	}
	log, err := newBuildLog(name, say)
	if err != nil {
		return err
	}
	argv := buildCommand(root)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + buildFolder, "LC_ALL=C.UTF-8", epochVariable + "=" + date}
	cmd.Stdout, cmd.Stderr = log, log
	err = runTied(cmd)
	if err != nil && ctx.Err() == nil {
		return log.failed(err)
	}
	return errors.Join(ctx.Err(), log.remove())
}

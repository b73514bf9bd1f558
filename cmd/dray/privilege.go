// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	// rootAnnotation marks a command that only root can run. Its value lists,
	// separated by commas, flags that lift this.
	rootAnnotation = "root"
	// withoutArguments stands for an empty command line in that list.
	withoutArguments = "ARGUMENTS"
)

// forRoot marks a command that only root can run, unless given one of these flags.
func forRoot(cmd *cobra.Command, unless ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[rootAnnotation] = strings.Join(unless, ",")
	return cmd
}

// checkRoot rejects a command that this user cannot run, before it changes anything.
func (a *app) checkRoot(cmd *cobra.Command, user int) error {
	flags, needed := cmd.Annotations[rootAnnotation]
	given := func(flag string) bool {
		if flag == withoutArguments {
			return cmd.Flags().NArg() == 0
		}
		on, err := cmd.Flags().GetBool(flag)
		return err == nil && on
	}
	if !needed || user == 0 || slices.ContainsFunc(strings.Split(flags, ","), given) {
		return nil
	}
	return a.mustBeRoot(cmd)
}

func (a *app) mustBeRoot(cmd *cobra.Command) error {
	return &fixableError{
		Text: "must be root",
		Fix:  "sudo " + shellWords(append([]string{nameForSudo(cmd.Root().Name())}, a.argv...)),
	}
}

// sudoPath are the folders in which sudo looks for programs on Debian (secure_path of
// /etc/sudoers), whatever the user's PATH is.
var sudoPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// nameForSudo is the name by which sudo finds this program: its path, if sudo does not
// look into its folder.
func nameForSudo(name string) string {
	path, err := os.Executable()
	if err != nil || slices.Contains(sudoPath, filepath.Dir(path)) {
		return name
	}
	return path
}

// shellWords quotes a command line for a shell.
func shellWords(argv []string) string {
	var words []string
	for _, word := range argv {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

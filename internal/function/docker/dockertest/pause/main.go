// SPDX-License-Identifier: Apache-2.0

// Pause is the pause program of tests, which `dray pause` is otherwise.
package main

import "github.com/drayage/dray/internal/function/docker"

func main() { docker.Pause() }

// SPDX-License-Identifier: Apache-2.0

// Pause is the pause program for tests; otherwise `dray pause` does this.
package main

import "github.com/drayage/dray/internal/function/docker"

func main() { docker.Pause() }

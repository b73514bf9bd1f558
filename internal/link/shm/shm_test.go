// SPDX-License-Identifier: Apache-2.0

package shm_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/link/transporttest"
)

func TestNative(t *testing.T) { transporttest.RunNative(t, shm.New(), 0, 1) }

func TestDpdk(t *testing.T) { transporttest.RunDpdk(t, shm.New(), 0, 1) }

func TestDpdkBesideNative(t *testing.T) { transporttest.RunDpdkBesideNative(t, shm.New()) }

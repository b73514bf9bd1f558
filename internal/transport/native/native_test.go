// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"testing"

	"github.com/drayage/dray/internal/transport/bridge"
	"github.com/drayage/dray/internal/transport/native"
	"github.com/drayage/dray/internal/transport/transporttest"
	"github.com/drayage/dray/internal/transport/veth"
)

func TestBothNative(t *testing.T) { transporttest.RunNative(t, native.Wrap(veth.New()), 0, 1) }

func TestOneNative(t *testing.T) { transporttest.RunNative(t, native.Wrap(bridge.New()), 1) }

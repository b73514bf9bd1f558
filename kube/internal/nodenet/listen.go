// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"net"
	"sync"

	"github.com/drayage/dray/kube/internal/socket"
)

// listen serves each connection to a socket of root until ctx ends.
func listen(ctx context.Context, path string, serve func(*net.UnixConn)) error {
	l, err := socket.Listen(path)
	if err != nil {
		return err
	}
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		connections.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
}

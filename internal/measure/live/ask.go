// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/node"
)

// answerTime bounds how long one broker can delay the figures of the others.
const answerTime = 3 * time.Second

// Ask queries a chain's broker. The Chain has no Links if the broker does not answer.
func Ask(ctx context.Context, b node.Brokered) (Chain, error) {
	c := Chain{Planned: b.Links}
	c.Chain = b.Chain
	links, err := askBroker(ctx, b.Dir)
	c.At = time.Now()
	if err != nil {
		return c, fmt.Errorf("chain %s: %w", b.Chain, err)
	}
	c.Links = links
	return c, nil
}

// Of reads what the ports of a chain that is up report.
func Of(up *node.Live) Source {
	return func(ctx context.Context) ([]Chain, error) {
		c, err := Ask(ctx, node.Brokered{Chain: up.Chain.Name, Dir: up.BrokerDir(), Links: up.State.Plan.Links})
		return []Chain{c}, err
	}
}

func askBroker(ctx context.Context, dir string) ([]broker.LinkStatus, error) {
	client, err := broker.Dial(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return client.Status(ctx)
}

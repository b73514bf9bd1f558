/* SPDX-License-Identifier: Apache-2.0 */
#include "ringport.h"

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdio.h>

#include "check.h"

uint16_t ring_port(unsigned i, struct rte_mempool *pool, struct rte_ring **sent)
{
	struct rte_eth_conf conf = {0};
	struct rte_ring *rx;
	char name[16];
	int port;

	snprintf(name, sizeof(name), "rx%u", i);
	rx = rte_ring_create(name, 64, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	name[0] = 't';
	*sent = rte_ring_create(name, 64, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	CHECK(rx && *sent);
	name[0] = 'p';
	port = rte_eth_from_rings(name, &rx, 1, sent, 1, 0);
	CHECK(port >= 0);
	CHECK_EQ(rte_eth_dev_configure((uint16_t)port, 1, 1, &conf), 0);
	CHECK_EQ(rte_eth_rx_queue_setup((uint16_t)port, 0, 64, 0, NULL, pool), 0);
	CHECK_EQ(rte_eth_tx_queue_setup((uint16_t)port, 0, 64, 0, NULL), 0);
	CHECK_EQ(rte_eth_dev_start((uint16_t)port), 0);
	return (uint16_t)port;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A port of two rings, for tests of the program without a link. */
#ifndef VNF_RINGPORT_H
#define VNF_RINGPORT_H

#include <stdint.h>

struct rte_mempool;
struct rte_ring;

/* Makes and starts port i. *sent gets what the program sends by it. Its DPDK number. */
uint16_t ring_port(unsigned i, struct rte_mempool *pool, struct rte_ring **sent);

#endif

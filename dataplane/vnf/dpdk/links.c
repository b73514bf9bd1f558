/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers are up: the links of their ports, and what they announced. */
#include <rte_ethdev.h>
#include <time.h>

#include "program.h"

/* If a driver does not report the link, its worker counts as down. */
static bool is_up(uint16_t device)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(device, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static uint32_t look(struct program *p)
{
	uint32_t up = 0;
	struct timespec t;

	for (unsigned i = 1; i < p->ports; i++)
		up |= (uint32_t)is_up(p->device[i]) << i;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return lb_members(&p->function.lb, up,
			  (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}

void links_open(struct program *p)
{
	lb_first(&p->function.lb, look(p));
}

void links_watch(struct program *p)
{
	lb_change(&p->function.lb, look(p));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Life and end of a generation. */
#include "generation.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct generation *generation_new(uint32_t kind, uint32_t number)
{
	struct generation *gen = calloc(1, sizeof(*gen));

	if (!gen)
		return NULL;
	atomic_init(&gen->refs, 1);
	gen->kind = kind;
	gen->number = number;
	gen->memfd = -1;
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++)
		gen->bells[q] = -1;
	return gen;
}

void generation_put(struct generation *gen)
{
	/*
	 * acq_rel: pairs with itself, and with the acquire in port_reap: the thread that frees sees
	 * the writes of all others.
	 */
	if (atomic_fetch_sub_explicit(&gen->refs, 1, memory_order_acq_rel) == 1 && gen->last_put)
		gen->last_put(gen);
}

void generation_free(struct generation *gen)
{
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		if (gen->tx[q])
			gen->destroy_owner(gen->tx[q]);
		if (gen->rx[q])
			gen->destroy_owner(gen->rx[q]);
		if (gen->bells[q] >= 0)
			close(gen->bells[q]);
	}
	if (gen->map)
		munmap(gen->map, gen->map_size);
	if (gen->memfd >= 0)
		close(gen->memfd);
	free(gen);
}

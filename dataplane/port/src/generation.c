/* SPDX-License-Identifier: Apache-2.0 */
/* Life and end of a generation. */
#include "generation.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rights.h"

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

void generation_hang_up(struct generation *gen)
{
	/* release: pairs with the acquires in draining_final and retire_untaken. */
	atomic_store_explicit(&gen->peer_gone, true, memory_order_release);
	for (unsigned q = 0; q < gen->queues; q++)
		(void)shutdown(gen->bells[q], SHUT_RDWR);
}

static void close_bell(const struct generation *gen, int bell)
{
	if (bell < 0)
		return;
	if (gen->discarder)
		discard(gen->discarder, bell);
	else
		close(bell);
}

void generation_free(struct generation *gen)
{
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		if (gen->tx[q])
			gen->destroy_owner(gen->tx[q]);
		if (gen->rx[q])
			gen->destroy_owner(gen->rx[q]);
		close_bell(gen, gen->bells[q]);
	}
	if (gen->map)
		munmap(gen->map, gen->map_size);
	if (gen->memfd >= 0)
		close(gen->memfd);
	free(gen);
}

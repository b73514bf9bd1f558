/* SPDX-License-Identifier: Apache-2.0 */
/* Life and end of an attachment. */
#include "attachment.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct attachment *attachment_new(uint32_t kind, uint32_t generation)
{
	struct attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	atomic_init(&a->refs, 1);
	a->kind = kind;
	a->generation = generation;
	a->memfd = -1;
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++)
		a->bells[q] = -1;
	return a;
}

void attachment_put(struct attachment *attachment)
{
	/* acq_rel: pairs with itself, and with the acquire in port_reap: the thread that frees sees what all others did. */
	if (atomic_fetch_sub_explicit(&attachment->refs, 1, memory_order_acq_rel) == 1 && attachment->last_put)
		attachment->last_put(attachment);
}

void attachment_free(struct attachment *attachment)
{
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		if (attachment->tx[q])
			attachment->destroy_home(attachment->tx[q]);
		if (attachment->rx[q])
			attachment->destroy_home(attachment->rx[q]);
		if (attachment->bells[q] >= 0)
			close(attachment->bells[q]);
	}
	if (attachment->map)
		munmap(attachment->map, attachment->map_size);
	if (attachment->memfd >= 0)
		close(attachment->memfd);
	free(attachment);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, and closing while the application still has buffers. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>

#include "leases.h"

#define FIRST_RETURNS 64

int opened_new(const char *name, const struct dray_options *options, struct opened **out)
{
	struct opened *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return -ENOMEM;
	ret = dray_open(name, options, &o->port);
	if (ret) {
		free(o);
		return ret;
	}
	pthread_mutex_init(&o->lock, NULL);
	o->references = 1;
	*out = o;
	return 0;
}

void opened_get(struct opened *o)
{
	__atomic_fetch_add(&o->references, 1, __ATOMIC_RELAXED);
}

void opened_put(struct opened *o)
{
	/* acq_rel: pairs with itself; the thread that frees sees the writes of all others. */
	if (__atomic_sub_fetch(&o->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (unsigned int i = 0; i < DRAY_MAX_QUEUES; i++)
		free(o->returns[i].pkts);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static void release_returns(struct returns *r)
{
	dray_release(r->pkts, r->count);
	__atomic_store_n(&r->count, 0, __ATOMIC_RELAXED);
}

void opened_close(struct opened *o)
{
	pthread_mutex_lock(&o->lock);
	for (unsigned int i = 0; i < DRAY_MAX_QUEUES; i++) {
		if (o->leases[i])
			leases_close(o->leases[i]);
		o->leases[i] = NULL;
		release_returns(&o->returns[i]);
	}
	dray_close(o->port);
	__atomic_store_n(&o->closed, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&o->lock);
	opened_put(o);
}

static bool has_room(struct returns *r)
{
	uint32_t size = r->size ? 2 * r->size : FIRST_RETURNS;
	struct dray_pkt *pkts;

	if (r->count < r->size)
		return true;
	pkts = realloc(r->pkts, size * sizeof(*pkts));
	if (!pkts)
		return false;
	r->pkts = pkts;
	r->size = size;
	return true;
}

void opened_return(struct opened *o, unsigned int queue, const struct dray_pkt *pkt)
{
	struct returns *r = &o->returns[queue];
	struct dray_pkt p = *pkt;

	pthread_mutex_lock(&o->lock);
	if (o->closed) {
		dray_release(&p, 1);
	} else if (has_room(r)) {
		r->pkts[r->count] = p;
		__atomic_store_n(&r->count, r->count + 1, __ATOMIC_RELAXED);
	}
	/*
	 * Without memory, the buffer stays lent until the process ends: nothing else is safe
	 * here.
	 */
	pthread_mutex_unlock(&o->lock);
}

unsigned int opened_take_returns(struct opened *o, unsigned int queue,
				 const struct dray_owner *owner)
{
	struct returns *r = &o->returns[queue];
	unsigned int n = 0;

	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < r->count; i++)
		n += r->pkts[i].owner == owner;
	release_returns(r);
	pthread_mutex_unlock(&o->lock);
	return n;
}

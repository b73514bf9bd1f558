/* SPDX-License-Identifier: Apache-2.0 */
/* A port gets its traffic classes when it is opened, and loses them when it is closed. */
#include "egress.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "pacer.h"

/* A scheduler for the port's classes. Error: -errno. */
static int make_scheduler(struct egress *e, struct scheduler **scheduler)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = clock_ns();
	return scheduler_new(&e->port->classes, seed, egress_drop, e, scheduler);
}

static int egress_init(struct egress *e, struct dray_port *port)
{
	int ret;

	e->port = port;
	e->due = UINT64_MAX;
	e->dir = &port->queues[0].tx;
	ret = pacer_init(e);
	if (ret)
		return ret;
	ret = make_scheduler(e, &e->scheduler);
	if (ret)
		pacer_destroy(e);
	return ret;
}

int egress_start(struct dray_port *port)
{
	struct egress *e;
	int ret;

	if (port->classes.classes == 0)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	ret = egress_init(e, port);
	if (ret) {
		free(e);
		return ret;
	}
	e->dir->egress = e;
	port->egress = e;
	ret = pacer_start(e);
	if (ret)
		egress_stop(port);
	return ret;
}

int egress_change(struct dray_port *port)
{
	struct egress *e = port->egress;
	struct scheduler *next;
	int ret = make_scheduler(e, &next);

	if (ret)
		return ret;
	scheduler_free(atomic_exchange(&e->next, next)); /* one that nobody has used yet */
	egress_remind(e);
	return 0;
}

void egress_remind(struct egress *e)
{
	if (atomic_load_explicit(&e->next, memory_order_relaxed))
		pthread_cond_signal(&e->wake);
}

void egress_stop(struct dray_port *port)
{
	struct egress *e = port->queues ? port->queues[0].tx.egress : NULL;

	if (!e)
		return;
	pacer_stop(e);
	while (egress_is_pending(e))
		egress_drop(e, &e->pending[e->pending_at++]);
	scheduler_free(atomic_exchange(&e->next, NULL));
	scheduler_free(e->scheduler);
	e->dir->egress = NULL;
	port->egress = NULL;
	pacer_destroy(e);
	free(e);
}

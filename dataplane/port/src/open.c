/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close a port. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "direction.h"
#include "control.h"
#include "egress/egress.h"
#include "queues.h"
#include "rebind.h"
#include "rights.h"
#include "service.h"
#include "siblings.h"
#include "sized.h"
#include "telemetry.h"
#include "watch.h"

#define DEFAULT_DIRECTORY "/run/dray/ports"
#define DEFAULT_TIMEOUT_MS 10000
#define DEFAULT_SPIN_US 50

static int take_options(struct dray_port *port, const char *name, const struct dray_options *given,
			uint32_t *timeout_ms)
{
	struct dray_options o = {0};
	const char *directory;
	int n, ret = given ? sized_read(&o, sizeof(o), given) : 0;

	if (ret)
		return ret;
	if (o.reserved)
		return -E2BIG;
	if (!name || !wire_name_valid(name) || o.queues > DRAY_MAX_QUEUES ||
	    o.mode > DRAY_MODE_SLEEPING ||
	    (o.flags & ~(uint32_t)(DRAY_RX_COPY | DRAY_SERVICE_THREAD)))
		return -EINVAL;
	directory = o.directory ? o.directory : getenv("DRAY_PORTS");
	n = snprintf(port->path, sizeof(port->path), "%s/%s",
		     directory ? directory : DEFAULT_DIRECTORY, name);
	if (n < 0 || (size_t)n >= sizeof(port->path))
		return -ENAMETOOLONG;
	port->discarder = discarder_get(port->path);
	if (!port->discarder)
		return -ENOMEM;
	strncpy(port->welcome.port, name, PORT_NAME - 1);
	port->mode = o.mode;
	port->flags = o.flags;
	port->wanted_queues = o.queues;
	port->spin_ticks = (uint64_t)((double)clock_rate_hz(&port->rate) / 1e6 *
				      (o.spin_us ? o.spin_us : DEFAULT_SPIN_US));
	port->learns = o.spin_us == 0;
	*timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	return 0;
}

EXPORT int dray_open(const char *name, const struct dray_options *options, struct dray_port **out)
{
	struct dray_port *port;
	uint32_t timeout_ms = 0;
	int ret;

	if (!out)
		return -EINVAL;
	port = port_new();
	if (!port)
		return -ENOMEM;
	ret = port->epoll < 0 ? -errno : take_options(port, name, options, &timeout_ms);
	if (ret == 0)
		ret = control_open(port, timeout_ms);
	if (ret == 0) {
		port->magic = PORT_MAGIC;
		ret = queues_make(port);
	}
	if (ret == 0)
		ret = egress_start(port);
	if (ret == 0 && (port->flags & DRAY_SERVICE_THREAD))
		ret = service_start(port);
	if (ret == 0)
		ret = siblings_add(port);
	if (ret) {
		service_stop(port);
		egress_stop(port);
		port->magic = 0;
		control_close(port);
		port_put(port);
		return ret;
	}
	*out = port;
	return 0;
}

/* What a retired owner still waits for comes back by dray_release; from now on, from any thread. */
static void orphan_all(struct generation *gen)
{
	for (unsigned q = 0; q < DRAY_MAX_QUEUES; q++) {
		for (unsigned i = 0; i < 2; i++) {
			struct dray_owner *owner = i ? gen->rx[q] : gen->tx[q];

			if (owner && !owner->settled)
				owner_orphan(owner);
		}
	}
}

EXPORT int dray_close(struct dray_port *port)
{
	struct generation *gen, *next;

	if (!port_valid(port))
		return -EBADF;
	siblings_remove(port);
	service_stop(port);
	egress_stop(port);
	pthread_mutex_lock(&port->lock);
	/* every reader has the lock */
	atomic_store_explicit(&port->current, NULL, memory_order_relaxed);
	telemetry_step(port, true);
	port_capture(port, NULL);
	for (unsigned q = 0; q < port->queue_count; q++) {
		direction_leave_capture(&port->queues[q].tx);
		direction_leave_capture(&port->queues[q].rx);
	}
	port_reap_captures(port);
	pthread_mutex_unlock(&port->lock);
	control_close(port);
	port->magic = 0;
	for (gen = port->generations; gen; gen = next) {
		next = gen->next;
		unwatch_bells(port, gen);
		orphan_all(gen);
		for (unsigned q = 0; q < gen->queues; q++)
			shutdown(gen->bells[q], SHUT_RDWR); /* the peer learns it now, not when the
							       last buffer is back */
		generation_put(gen);
	}
	port_put(port);
	return 0;
}

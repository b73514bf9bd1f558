/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a port: from its allocation to its last reference. */
#include "port.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rights.h"

/* Pages of its own, which are wiped in a child of fork, so that its calls fail at once. */
struct dray_port *port_new(void)
{
	struct dray_port *port = mmap(NULL, sizeof(*port), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (port == MAP_FAILED)
		return NULL;
	(void)madvise(port, sizeof(*port), MADV_WIPEONFORK);
	atomic_init(&port->refs, 1);
	pthread_mutex_init(&port->lock, NULL);
	port->control.fd = -1;
	port->thread_stop[0] = port->thread_stop[1] = -1;
	port->epoll = epoll_create1(EPOLL_CLOEXEC);
	port->event_epoll = -1;
	clock_rate_begin(&port->rate);
	return port;
}

void port_get(struct dray_port *port)
{
	atomic_fetch_add_explicit(&port->refs, 1, memory_order_relaxed);
}

static void free_queue(struct queue *queue)
{
	free((void *)queue->histogram);
	if (queue->waker.fd >= 0)
		close(queue->waker.fd);
	if (queue->tx_waker.fd >= 0)
		close(queue->tx_waker.fd);
	if (queue->epoll >= 0)
		close(queue->epoll);
}

static void port_free(struct dray_port *port)
{
	for (unsigned q = 0; port->queues && q < port->queue_count; q++)
		free_queue(&port->queues[q]);
	if (port->telemetry)
		munmap(port->telemetry, port->telemetry_size);
	if (port->epoll >= 0)
		close(port->epoll);
	if (port->event_epoll >= 0)
		close(port->event_epoll);
	discarder_put(port->discarder);
	pthread_mutex_destroy(&port->lock);
	free(port->queues);
	munmap(port, sizeof(*port));
}

void port_put(struct dray_port *port)
{
	/* acq_rel: pairs with itself; the thread that frees sees the writes of all others. */
	if (atomic_fetch_sub_explicit(&port->refs, 1, memory_order_acq_rel) == 1)
		port_free(port);
}

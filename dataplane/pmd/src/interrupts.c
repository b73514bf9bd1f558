/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts of receiving queues: the application sleeps on a descriptor until there is something
 * to receive.
 */
#include <errno.h>
#include <rte_interrupts.h>
#include <rte_pause.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver.h"
#include "leases.h"

/* A descriptor that is readable if libdray's descriptor of that queue is, or if the driver makes it
 * so. */
static int make_descriptor(struct dray_rxq *q)
{
	int fds[2] = {dray_queue_fd(q->port, q->queue), leases_can_wake(q->leases)};
	struct epoll_event e = {.events = EPOLLIN};

	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (q->epoll < 0)
		return -errno;
	for (unsigned int i = 0; i < 2; i++) {
		if (fds[i] < 0)
			return fds[i];
		if (epoll_ctl(q->epoll, EPOLL_CTL_ADD, fds[i], &e) < 0)
			return -errno;
	}
	return 0;
}

static int set_vectors(struct rte_eth_dev *dev, struct rte_intr_handle *handle)
{
	const uint16_t n = dev->data->nb_rx_queues;
	int ret = rte_intr_type_set(handle, RTE_INTR_HANDLE_VDEV);

	if (ret == 0)
		ret = rte_intr_max_intr_set(handle, n + RTE_INTR_VEC_RXTX_OFFSET);
	if (ret == 0)
		ret = rte_intr_nb_efd_set(handle, n);
	if (ret == 0)
		ret = rte_intr_efd_counter_size_set(handle, 0); /* EAL reads nothing from it */
	if (ret == 0)
		ret = rte_intr_vec_list_alloc(handle, "dray_vectors", n);
	for (uint16_t i = 0; ret == 0 && i < n; i++) {
		struct dray_rxq *q = dev->data->rx_queues[i];

		ret = make_descriptor(q);
		if (ret == 0)
			ret = rte_intr_efds_index_set(handle, i, q->epoll);
		if (ret == 0)
			ret = rte_intr_vec_list_index_set(handle, i, i + RTE_INTR_VEC_RXTX_OFFSET);
	}
	return ret;
}

int dray_interrupts_start(struct rte_eth_dev *dev)
{
	int ret;

	if (!dev->data->dev_conf.intr_conf.rxq || dev->data->nb_rx_queues == 0)
		return 0;
	dev->intr_handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!dev->intr_handle)
		return -ENOMEM;
	ret = set_vectors(dev, dev->intr_handle);
	if (ret)
		dray_interrupts_stop(dev);
	return ret;
}

void dray_interrupts_stop(struct rte_eth_dev *dev)
{
	if (!dev->intr_handle)
		return;
	/* an application may have left them in its own set */
	rte_intr_free_epoll_fd(dev->intr_handle);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		struct dray_rxq *q = dev->data->rx_queues[i];

		if (q->epoll >= 0)
			close(q->epoll);
		q->epoll = -1;
	}
	rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}

static bool poll_once(struct dray_rxq *q)
{
	q->pending_count = (uint16_t)dray_rx_burst(q->port, q->queue, q->pending, 1);
	return q->pending_count > 0;
}

/*
 * Called by the thread that polls the queue, before it sleeps. libdray asks the peer to ring once
 * the queue was empty for long enough. A packet that arrives until then is kept, and makes the
 * descriptor readable at once.
 */
int dray_rx_interrupt_enable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct dray_rxq *q = dev->data->rx_queues[queue];

	if (q->epoll < 0)
		return -ENOTSUP;
	leases_wait(q->leases);
	while (q->pending_count == 0 && !poll_once(q) && dray_may_sleep(q->port, q->queue) == 0)
		rte_pause();
	if (q->pending_count)
		(void)eventfd_write(q->leases->event, 1);
	return 0;
}

int dray_rx_interrupt_disable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct dray_rxq *q = dev->data->rx_queues[queue];

	if (q->epoll < 0)
		return -ENOTSUP;
	leases_awake(q->leases);
	return 0;
}

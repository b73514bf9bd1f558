/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link: libdray's events become the ethdev's state, and its interrupts. This code runs in EAL's
 * interrupt thread, or before the device is started.
 */
#include <errno.h>
#include <rte_alarm.h>
#include <rte_interrupts.h>

#include "driver.h"

#define SERVICE_US 50000 /* libdray needs a call at least every 100 ms */
#define EVENTS 16

static void set_link(struct rte_eth_dev *dev, bool up)
{
	struct rte_eth_link link = {
		.link_speed = up ? RTE_ETH_SPEED_NUM_100G : RTE_ETH_SPEED_NUM_NONE,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED,
		.link_status = up ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN,
	};

	rte_eth_linkstatus_set(dev, &link);
}

/* Copy the values of the present generation. */
static bool refresh(struct dray_device *device)
{
	struct dray_info info = {.size = sizeof(info)};

	if (dray_info(device->opened->port, &info) < 0 || info.state != DRAY_LINK_UP)
		return false;
	__atomic_store_n(&device->link_queue_count, (uint16_t)info.queues_in_use, __ATOMIC_RELAXED);
	__atomic_store_n(&device->generation, info.generation, __ATOMIC_RELAXED);
	/*
	 * The application may have half of a queue's buffers: the peer goes on with the others.
	 */
	__atomic_store_n(&device->hold, RTE_MIN(device->arguments.rx_hold, info.packet_slots / 2),
			 __ATOMIC_RELAXED);
	return true;
}

/* Notify the application of a status that differs from the last one. */
static void notify(struct dray_device *device, bool up)
{
	struct rte_eth_dev *dev = device->ethdev;

	if (device->notified_up == up)
		return;
	__atomic_store_n(&device->notified_up, up, __ATOMIC_RELEASE);
	set_link(dev, up);
	if (dev->data->dev_conf.intr_conf.lsc && dev->data->dev_started)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
}

static void take_event(struct dray_device *device, const struct dray_event *event)
{
	const char *name = device->ethdev->data->name;

	switch (event->type) {
	case DRAY_EVENT_PEER_UP:
		dray_count(&device->link.ups, 1);
		refresh(device);
		notify(device, true);
		break;
	case DRAY_EVENT_PEER_DOWN:
		dray_count(&device->link.downs, 1);
		notify(device, false);
		break;
	case DRAY_EVENT_REBIND:
		dray_count(&device->link.rebinds, 1);
		break;
	case DRAY_EVENT_PEER_HOLDS:
		dray_count(&device->link.peer_holds, 1);
		DRAY_LOG(NOTICE, "%s: the peer keeps all buffers of a queue\n", name);
		break;
	case DRAY_EVENT_BROKER_LOST:
		DRAY_LOG(NOTICE, "%s: the broker is gone; the link goes on\n", name);
		break;
	case DRAY_EVENT_ERROR:
		dray_count(&device->link.errors, 1);
		DRAY_LOG(ERR, "%s: the link could not be set up: %s\n", name,
			 dray_strerror(event->error));
		break;
	default:
		break;
	}
}

static void serve(void *argument)
{
	struct dray_device *device = argument;
	struct dray_port *port = device->opened->port;
	struct dray_event events[EVENTS];
	int n;

	(void)dray_service(port);
	while ((n = dray_events(port, events, EVENTS)) > 0)
		for (int i = 0; i < n; i++)
			take_event(device, &events[i]);
	notify(device, refresh(device)); /* in case events were lost */
}

static void serve_often(void *argument)
{
	serve(argument);
	(void)rte_eal_alarm_set(SERVICE_US, serve_often, argument);
}

int dray_link_update(struct rte_eth_dev *dev, int wait)
{
	struct dray_device *device = dev->data->dev_private;
	bool up;

	(void)wait; /* there is no negotiation to wait for: there is a peer, or none */
	/*
	 * Not what libdray says already: the values of refresh() must be in effect first. Again if
	 * the interrupt thread may have set another status just before this did.
	 */
	do {
		up = __atomic_load_n(&device->notified_up, __ATOMIC_ACQUIRE);
		set_link(dev, up);
	} while (up != __atomic_load_n(&device->notified_up, __ATOMIC_ACQUIRE));
	return 0;
}

int dray_link_watch(struct dray_device *device)
{
	int fd = dray_event_fd(device->opened->port), ret;

	if (fd < 0)
		return fd;
	device->control = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!device->control)
		return -ENOMEM;
	ret = rte_intr_fd_set(device->control, fd);
	if (ret == 0)
		ret = rte_intr_type_set(device->control, RTE_INTR_HANDLE_EXT);
	if (ret == 0)
		ret = rte_intr_callback_register(device->control, serve, device);
	if (ret == 0 && rte_eal_alarm_set(SERVICE_US, serve_often, device) < 0) {
		rte_intr_callback_unregister_sync(device->control, serve, device);
		ret = -EIO;
	}
	if (ret) {
		rte_intr_instance_free(device->control);
		device->control = NULL;
	}
	return ret;
}

void dray_link_unwatch(struct dray_device *device)
{
	if (!device->control)
		return;
	rte_eal_alarm_cancel(serve_often, device);
	rte_intr_callback_unregister_sync(device->control, serve, device);
	rte_intr_instance_free(device->control);
	device->control = NULL;
	device->notified_up = false;
	set_link(device->ethdev, false);
}

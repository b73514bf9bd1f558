/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port: what stays when transports change. Its fields, and its life; README.md has the order of
 * the files that work on it.
 */
#ifndef DRAY_PORT_H
#define DRAY_PORT_H

#include <pthread.h>

#include "generation.h"
#include "capture.h"
#include "clock.h"
#include "idle.h"
#include "pool.h"
#include "wire.h"

#define EXPORT __attribute__((visibility("default")))

#define PORT_MAGIC 0x706f7274u
#define EVENTS 64
#define DRAIN_NS 1000000000u /* for how long a peer that was left may still send */

/* What its thread knows of one direction of a queue, sending or receiving. */
struct direction {
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t busy; /* a call is in progress */
	uintptr_t thread;
	uint32_t switches;	       /* of the port, which this direction has followed */
	struct generation *generation; /* in use; the reference of `owner` keeps it */
	/* of that generation; both are NULL while the link is down */
	struct dray_owner *owner;
	/* receiving: owners that were left, but may still have packets */
	struct dray_owner *draining;
	struct capture_ring *capture; /* NULL: nobody captures */
	struct egress *egress;	      /* sending: traffic classes; NULL: none */
	bool armed;
	struct idle idle;   /* receiving, adaptive mode */
	uint64_t polled_ns; /* when dray_rx_burst last looked at `draining` */
	uint64_t served_ns; /* when dray_wait last served the control plane; 0: it must */
	struct counters counters;
};

struct queue {
	struct direction tx, rx;
	struct waker waker;    /* of the thread that has both sides, or rx */
	struct waker tx_waker; /* of a thread that waits for tx alone */
	int epoll;	       /* dray_queue_fd; -1: not requested */
	struct pool *pool;     /* for copies; NULL: none needed */
	struct counters pool_counters;
	_Atomic uint64_t *histogram; /* of HISTOGRAM_SIZE */
	uint64_t sampled;	     /* packets sent when the sampling was last decided */
};

enum control_state {
	CONTROL_LOST = 0,
	CONTROL_GREETED,  /* HELLO is out */
	CONTROL_WELCOMED, /* the classes are still to come */
	CONTROL_READY,	  /* welcomed */
};

struct control {
	_Atomic int fd; /* changed under the lock, polled without */
	enum control_state state;
	uint64_t deadline_ns;	    /* GREETED: give up; LOST: try again */
	uint64_t lost_ns;	    /* when the broker was lost that was there last */
	uint32_t newest;	    /* generation offered last on this connection */
	struct generation *offered; /* mapped, not live */
	struct wire_offer offer;    /* that belongs to it */
	int error;		    /* why the last attempt failed */
};

struct dray_port {
	uint32_t magic; /* wiped in a child of fork */
	uint32_t queue_count;
	uint32_t mode;
	uint32_t flags;
	uint64_t spin_ticks;
	bool learns;			      /* to poll for less than that */
	_Atomic uint32_t switches;	      /* how often current or capture changed */
	_Atomic(struct generation *) current; /* NULL: down */
	struct queue *queues;
	struct egress *egress; /* of queue 0's sending side */

	pthread_mutex_t lock;  /* all below */
	_Atomic uint32_t refs; /* one while open, one per generation */
	struct generation *generations;
	struct generation *pools; /* the owner of copies; NULL: none */
	struct control control;
	struct wire_welcome welcome;
	struct wire_classes classes; /* of what is sent; all 0: none */
	struct telemetry_header *telemetry;
	size_t telemetry_size;
	uint64_t telemetry_due_ns;
	struct capture *capture;  /* NULL: nobody captures */
	struct capture *captures; /* that one, and those that a side has not left yet */
	struct clock_rate rate;
	char path[108];
	struct discarder *discarder; /* of `path` */
	uint32_t wanted_queues;
	int epoll;
	int event_epoll; /* dray_event_fd; -1: not requested */
	struct dray_event events[EVENTS];
	_Atomic uint32_t event_head;
	_Atomic uint32_t event_tail;
	uint32_t last_sample_shift;
	uint64_t sampling_ns; /* when the sampling was last decided */

	pthread_t thread;
	bool has_thread;
	int thread_stop[2];
};

static inline bool port_valid(const struct dray_port *port)
{
	return port && port->magic == PORT_MAGIC;
}

/* A port with nothing open yet, and one reference. NULL: no memory. */
struct dray_port *port_new(void);

void port_get(struct dray_port *port);

/* Drop a reference. The last one frees the port. */
void port_put(struct dray_port *port);

#endif

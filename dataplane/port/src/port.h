/* SPDX-License-Identifier: Apache-2.0 */
/* The port: what stays when transports change. */
#ifndef DRAY_PORT_H
#define DRAY_PORT_H

#include <pthread.h>

#include "attachment.h"
#include "capture.h"
#include "clock.h"
#include "pool.h"
#include "wire.h"

#define EXPORT __attribute__((visibility("default")))

#define PORT_MAGIC 0x706f7274u
#define EVENTS 64
#define DRAIN_NS 1000000000u /* for how long a peer that was left may still send */

/* One direction of a queue, as its thread sees it. */
struct side {
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t busy; /* a call is in progress */
	uintptr_t thread;
	uint32_t switches;	       /* of the port, that this side has followed */
	struct attachment *attachment; /* that this side uses; its home keeps it in being */
	struct dray_home *home;	       /* in it; NULL, as attachment: link down */
	struct dray_home *draining;    /* receiving: left, but may still have packets */
	struct tap *tap;	       /* NULL: nobody captures */
	bool armed;
	uint64_t idle_ticks; /* when it began to be empty; 0: it is not */
	struct counters counters;
};

struct queue {
	struct side tx, rx;
	int wake;		  /* readable from a switch until rx follows it: for sleep_on. -1: busy mode */
	struct waker waker;	  /* of the thread that has both sides, or rx */
	int epoll;		  /* dray_queue_fd; -1: nobody asked */
	struct pool *pool;	  /* for copies; NULL: none needed */
	struct counters pool_counters;
	_Atomic uint64_t *histogram; /* of HISTOGRAM_SIZE */
};

enum control_state {
	CONTROL_LOST = 0,
	CONTROL_GREETED, /* HELLO is out */
	CONTROL_READY,	 /* welcomed */
};

struct control {
	_Atomic int fd; /* changed under the lock, polled without */
	enum control_state state;
	uint64_t deadline_ns; /* GREETED: give up; LOST: try again */
	uint64_t lost_ns;     /* when the broker was lost that was there last */
	uint32_t newest;	      /* generation offered last on this connection */
	struct attachment *offered;   /* mapped, not live */
	struct wire_offer offer;      /* that belongs to it */
	int error;		      /* why the last attempt failed */
};

struct dray_port {
	uint32_t magic; /* wiped in a child of fork */
	uint32_t queue_count;
	uint32_t mode;
	uint32_t flags;
	uint64_t spin_ticks;
	_Atomic uint32_t switches; /* how often current or capture changed */
	_Atomic(struct attachment *) current; /* NULL: down */
	struct queue *queues;

	pthread_mutex_t lock; /* all below */
	_Atomic uint32_t refs; /* one while open, one per attachment */
	struct attachment *attachments;
	struct attachment *pools; /* the home of copies; NULL: none */
	struct control control;
	struct wire_welcome welcome;
	struct telemetry_header *telemetry;
	size_t telemetry_size;
	uint64_t telemetry_due_ns;
	struct capture *capture;  /* NULL: nobody captures */
	struct capture *captures; /* that one, and those that a side has not left yet */
	struct clock_rate rate;
	char path[108];
	uint32_t wanted_queues;
	int epoll;
	int event_epoll; /* dray_event_fd; -1: nobody asked */
	struct dray_event events[EVENTS];
	uint32_t event_head;
	_Atomic uint32_t event_tail;
	uint32_t last_sample_shift;

	pthread_t thread;
	bool has_thread;
	int thread_stop[2];
};

static inline bool port_valid(const struct dray_port *port)
{
	return port && port->magic == PORT_MAGIC;
}

/* Post an event. The lock is held. */
void port_event(struct dray_port *port, enum dray_event_type type, uint32_t generation, uint32_t kind, int error);

/* Make an attachment current, or none. The lock is held. */
void port_switch(struct dray_port *port, struct attachment *attachment);

/* Make all sides copy to a capture, which is the port's from now on, or to none. The lock is held. */
void port_capture(struct dray_port *port, struct capture *capture);

/* Free the captures that nobody uses. The lock is held. */
void port_reap_captures(struct dray_port *port);

/* Put a new attachment on the port's list: it is the port's from now on. The lock is held. */
void port_adopt(struct dray_port *port, struct attachment *attachment);

/* Look after attachments that are not current, and free those that nobody uses. The lock is held. */
void port_reap(struct dray_port *port);

/* Leave a generation whose peer is gone. The lock is held. */
void port_look_for_death(struct dray_port *port);

/* Everything that is due; the lock is held. */
void port_service(struct dray_port *port);

void port_get(struct dray_port *port);
void port_put(struct dray_port *port);

/* The memory that copies are made to, where options or policy may ask for copies. */
int port_make_pools(struct dray_port *port, bool needed);

/* control.c */
int control_open(struct dray_port *port, uint32_t timeout_ms);
void control_step(struct dray_port *port);
void control_close(struct dray_port *port);

/* telemetry.c */
int telemetry_map(struct dray_port *port, int fd, uint64_t size);
void telemetry_step(struct dray_port *port, bool now);
void telemetry_unmap(struct dray_port *port);
uint64_t port_count(const struct dray_port *port, unsigned queue, unsigned which);

/* service.c */
int service_start(struct dray_port *port);
void service_stop(struct dray_port *port);

/* burst.c: one call of a side, between enter and leave. */
bool side_enter(struct queue *queue, struct side *side);
void side_leave(struct side *side);
void side_leave_tap(struct side *side);
void side_update(struct dray_port *port, unsigned queue, struct side *side, bool sending);

static inline void side_follow(struct dray_port *port, unsigned queue, struct side *side, bool sending)
{
	/* acquire: pairs with the releases in port_switch and port_capture. */
	if (unlikely(side->switches != atomic_load_explicit(&port->switches, memory_order_acquire)))
		side_update(port, queue, side, sending);
}

/* Read what is on a queue's bell. Returns how many rings there were; notes the end of file. */
unsigned bell_drain(struct attachment *attachment, unsigned queue, struct counters *counters);

#endif

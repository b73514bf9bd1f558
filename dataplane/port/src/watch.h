/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoll sets on which an application can sleep. The port's lock is held, except in
 * unwatch_bell.
 */
#ifndef DRAY_WATCH_H
#define DRAY_WATCH_H

struct generation;
struct dray_port;

/* The connection to the broker. Error: -errno. */
int watch_control(struct dray_port *port, int fd);
void unwatch_control(struct dray_port *port, int fd);

/* What rings for buffers that other threads released. Error: -errno. */
int watch_waker(struct dray_port *port, int fd);

/*
 * What rings on all queues, and the peer's death. No bell is closed while it is watched: an epoll
 * set that is polled or closed meanwhile refers to it for a moment. If that reference is the last
 * one, a descriptor in the bell makes that thread wait (rights.h).
 */
void watch_bells(struct dray_port *port, const struct generation *gen);
void unwatch_bells(struct dray_port *port, const struct generation *gen);

/* One bell, when a side has taken the last of it. */
void unwatch_bell(struct dray_port *port, const struct generation *gen, unsigned queue);

/* Only the peer's death: the bells may still ring. */
void unwatch_death(struct dray_port *port, const struct generation *gen);

#endif

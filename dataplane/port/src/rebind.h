/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which generation and which capture the queues use, and when old ones are freed. The lock is held
 * in every call.
 */
#ifndef DRAY_REBIND_H
#define DRAY_REBIND_H

#include "port.h"

/* Put a new generation on the port's list: the port owns it from now on. */
void port_adopt(struct dray_port *port, struct generation *gen);

/* Make a generation current, or none. */
void port_switch(struct dray_port *port, struct generation *gen);

/* Leave a generation whose peer is gone. */
void port_look_for_death(struct dray_port *port);

/* Retire generations that are not current, and free those that are no longer used. */
void port_reap(struct dray_port *port);

/* Make all directions copy to a capture, which the port owns from now on, or to none. */
void port_capture(struct dray_port *port, struct capture *capture);

/* Free the captures that no direction uses. */
void port_reap_captures(struct dray_port *port);

#endif

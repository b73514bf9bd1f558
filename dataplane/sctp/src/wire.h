/* SPDX-License-Identifier: Apache-2.0 */
/* The source address of packets. */
#ifndef DRAY_SCTP_WIRE_H
#define DRAY_SCTP_WIRE_H

#include <stdbool.h>
#include <stdint.h>

/* A socket on this port (in network order) is bound to certain addresses; or it is gone. */
void wire_bound(uint16_t port, bool bound);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* DPDK's environment (EAL) of this process, which its dpdk ports share. */
#ifndef GEN_DPDK_EAL_H
#define GEN_DPDK_EAL_H

#include <stdbool.h>

#include "io.h"

/*
 * Start it with the arguments of the options, unless it runs; each start takes one stop. A device
 * that waits there for its peer, as virtio-user does if it is the server, gets --peer-timeout;
 * then the program ends with a message. false: error says why.
 */
bool dpdk_eal_start(const struct options *options, struct io_error *error);
void dpdk_eal_stop(void);

/*
 * Before a port is closed: from then on a crash of a driver, or of a thread of EAL's, ends the
 * program with the status that it has come to.
 */
void dpdk_eal_closing(void);

/*
 * Whether EAL with these arguments can start: that of a secondary process fails if the primary
 * one does not run, which a device of net_mpring tells. It may run without being one that this
 * process can join.
 */
bool dpdk_eal_has_primary(const char *arguments);

/* The first error that EAL or a driver logged; "" if there was none. */
const char *dpdk_eal_complaint(void);

#endif

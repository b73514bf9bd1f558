/* SPDX-License-Identifier: Apache-2.0 */
/* DPDK's environment (EAL) of this process, which its dpdk ports share. */
#ifndef GEN_DPDK_EAL_H
#define GEN_DPDK_EAL_H

#include <stdbool.h>

#include "io.h"

/*
 * Start it with the arguments of the options, unless it runs; each start needs one stop. A device
 * that waits for its peer meanwhile, as virtio-user does if it is the server, gets --peer-timeout;
 * then the program ends with a message. false: error says why.
 */
bool dpdk_eal_start(const struct options *options, struct io_error *error);
void dpdk_eal_stop(void);

/*
 * Call it before a port is closed: from then on, if a driver or a thread of EAL crashes, the
 * program ends with its own exit status.
 */
void dpdk_eal_closing(void);

/*
 * Whether EAL can start with these arguments. A secondary process needs a running primary process,
 * whose socket a device of net_mpring names. Even if that one runs, joining it may fail.
 */
bool dpdk_eal_has_primary(const char *arguments);

/* The first error that EAL or a driver logged; "" if there was none. */
const char *dpdk_eal_complaint(void);

#endif

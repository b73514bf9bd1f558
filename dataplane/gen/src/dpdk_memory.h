/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of EAL's memory. net_memif as a client with zero-copy hands them to its server,
 * and closes them when the server rejects it or ends. The next connection would then hand over
 * other files with the same numbers.
 */
#ifndef GEN_DPDK_MEMORY_H
#define GEN_DPDK_MEMORY_H

/*
 * Keep a second descriptor of each that has none yet, unless there is no room for one.
 */
void dpdk_memory_keep(void);

/* Put back those that were closed, unless their number is in use for something else. */
void dpdk_memory_restore(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of EAL's memory. net_memif as a client with zero-copy hands them to its server,
 * and closes them when that turns it away or goes: the next to connect would hand over whatever has
 * the numbers by then.
 */
#ifndef GEN_DPDK_MEMORY_H
#define GEN_DPDK_MEMORY_H

/*
 * Keep a second descriptor of each; those that are kept already stay. Where there is no room for
 * one, it is not kept.
 */
void dpdk_memory_keep(void);

/* Put back those that were closed, unless their number is in use for something else. */
void dpdk_memory_restore(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the net_dray driver in addition to the ethdev interface. */
#ifndef RTE_PMD_DRAY_H
#define RTE_PMD_DRAY_H

#include <rte_mempool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The mempool driver of pools whose mbufs net_dray sends without copying: for
 * rte_pktmbuf_pool_create_by_ops, or EAL's --mbuf-pool-ops-name.
 */
#define RTE_PMD_DRAY_POOL_OPS "dray"

/*
 * Create a pool of mbufs for frames that a net_dray port sends, with a data room that fits them.
 * Such an mbuf starts with its own memory, and is copied when it is first sent. Then, if the queue
 * has buffers to spare, it gets one of the link's buffers in place of its memory, and its later
 * frames are sent without a copy. The link's other end can read everything in such a buffer, sent
 * or not: use the pool only for frames that this application makes for that port.
 *
 * n: mbufs; cache_size: per lcore; priv_size: of the application, a multiple of 8; socket: as
 * rte_pktmbuf_pool_create. NULL with rte_errno: ENODEV no such port, EINVAL it is not a net_dray
 * port, or as rte_pktmbuf_pool_create_by_ops.
 */
struct rte_mempool *rte_pmd_dray_pool_create(const char *name, uint16_t port_id, unsigned int n,
					     unsigned int cache_size, uint16_t priv_size,
					     int socket);

#ifdef __cplusplus
}
#endif
#endif

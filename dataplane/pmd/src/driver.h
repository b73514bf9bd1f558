/* SPDX-License-Identifier: Apache-2.0 */
/* net_dray: a port of libdray as an ethdev. Declarations that its parts share. */
#ifndef NET_DRAY_DRIVER_H
#define NET_DRAY_DRIVER_H

#include <ethdev_driver.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "dray.h"
#include "opened.h"

#define DRAY_BURST 32u	     /* packets handled at once */
#define DRAY_FRAME_BYTES 18u /* of a frame beyond its MTU: header and one VLAN tag */
#define DRAY_TX_QUEUES 64    /* of the application, at most: they share those of the link */
/* bytes between words of different cores: the adjacent-line prefetcher fetches pairs of lines */
#define DRAY_APART 128

extern int dray_log_type;
#define DRAY_LOG(level, ...)                                                                       \
	rte_log(RTE_LOG_##level, dray_log_type, "net_dray: " RTE_FMT(__VA_ARGS__, ""))

/* A counter that one thread writes and any thread reads. */
static inline void dray_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t dray_counted(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* The device arguments. */
struct dray_arguments {
	char port[16];
	char directory[108]; /* "": libdray's own default */
	/* frames of up to this many bytes are copied into the mbuf; UINT32_MAX: all are */
	uint32_t rx_copy;
	uint32_t rx_hold; /* frames of a queue that the application may hold in place at once */
};

enum rx_counter {
	RX_PACKETS,
	RX_BYTES,
	RX_IN_PLACE, /* delivered in the peer's buffer */
	RX_HELD,     /* copied, since the application holds too many buffers */
	RX_TOO_LONG, /* dropped: too long for an mbuf of the pool, and scattering is off */
	RX_NO_MBUF,  /* times that the pool was empty */
	RX_COUNTERS
};

enum tx_counter {
	TX_PACKETS,
	TX_BYTES,
	TX_IN_PLACE, /* sent from the buffer in which the application wrote them */
	/* bound mbufs that were copied, since their buffer was of an older generation */
	TX_OLD,
	TX_TOO_LONG, /* dropped: longer than the buffers of the link, or empty */
	TX_NO_LINK,  /* dropped */
	TX_COUNTERS
};

struct dray_device;

struct dray_rxq {
	struct dray_port *port;
	struct leases *leases;
	struct rte_mempool *pool;
	uint64_t rearm;	      /* rearm_data of a new mbuf */
	uint64_t flags;	      /* ol_flags of a new mbuf */
	uint32_t copy_max;    /* frames of up to this many bytes are copied; at most room */
	const uint32_t *hold; /* buffers that the application may have at once */
	uint16_t queue;
	uint16_t room; /* bytes of data that an mbuf takes */
	uint16_t pending_count;
	bool lend;			     /* longer ones are attached */
	bool scatter;			     /* or copied into several mbufs */
	bool strip;			     /* leave a VLAN tag out of the frame */
	bool bindable;			     /* the pool is one of pool.c */
	struct dray_pkt pending[DRAY_BURST]; /* received, while there was no mbuf for them */
	uint64_t counters[RX_COUNTERS] __rte_aligned(DRAY_APART);
	uint64_t cleared[RX_COUNTERS]; /* values at the last reset of the statistics */
	struct dray_device *device;
	uint16_t descriptors;
	struct rte_eth_rxconf conf;
	int epoll; /* descriptor of the application's interrupt; -1: none */
} __rte_aligned(DRAY_APART);

/*
 * The sending state of one queue of the present link. Several of the application's queues may share
 * it.
 */
struct dray_link_queue {
	rte_spinlock_t lock;	  /* not taken if the application has one queue */
	struct dray_owner *owner; /* the buffer owner of the last generation that was sent to; NULL:
				     none yet */
	uint32_t bound;		  /* buffers that belong to mbufs */
	uint32_t bound_max;
} __rte_aligned(DRAY_APART);

struct dray_txq {
	struct dray_port *port;
	struct dray_device *device;
	uint16_t queue;
	bool vlan; /* send the VLAN tag of an mbuf */
	uint64_t counters[TX_COUNTERS] __rte_aligned(DRAY_APART);
	uint64_t cleared[TX_COUNTERS];
	uint16_t descriptors;
	struct rte_eth_txconf conf;
} __rte_aligned(DRAY_APART);

struct dray_link_counts {
	uint64_t ups, downs, rebinds, peer_holds, errors;
};

/* dev_private of the ethdev. */
struct dray_device {
	struct opened *opened;
	struct rte_eth_dev *ethdev;
	struct dray_arguments arguments;
	/* the constant fields are valid; the others date from when it was opened */
	struct dray_info info;
	uint32_t opened_queues, opened_mode;
	struct rte_ether_addr mac;
	/* queues of the present link that are in use; written on events, read by senders */
	uint16_t link_queue_count;
	uint32_t generation; /* the last one that went live */
	/* received buffers that the application may have at once, per queue */
	uint32_t hold;
	bool notified_up; /* the last status that the application was notified of */
	struct dray_link_counts link, link_cleared;
	struct dray_stats stats_cleared;
	struct rte_intr_handle *control;     /* libdray's control plane */
	struct dray_link_queue *link_queues; /* DRAY_MAX_QUEUES of them */
};

/* arguments.c */
int dray_arguments_read(const char *text, struct dray_arguments *arguments);

/* ethdev.c */
extern const struct eth_dev_ops dray_ops;

/* link.c */
int dray_link_update(struct rte_eth_dev *dev, int wait);
int dray_link_watch(struct dray_device *device);
void dray_link_unwatch(struct dray_device *device);

/* rx.c: the burst function that fits the setup of the queues. */
eth_rx_burst_t dray_rx_choose(const struct rte_eth_dev *dev);
int dray_rx_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode);

/* queues.c */
int dray_rxq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		   unsigned int socket, const struct rte_eth_rxconf *conf,
		   struct rte_mempool *pool);
void dray_rxq_release(struct rte_eth_dev *dev, uint16_t queue);
int dray_txq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t descriptors,
		   unsigned int socket, const struct rte_eth_txconf *conf);
void dray_txq_release(struct rte_eth_dev *dev, uint16_t queue);
int dray_queues_attach(struct rte_eth_dev *dev); /* to the port that is open */
void dray_rxq_forget(struct dray_rxq *q);	 /* that is being closed */

/* interrupts.c */
int dray_interrupts_start(struct rte_eth_dev *dev);
void dray_interrupts_stop(struct rte_eth_dev *dev);
int dray_rx_interrupt_enable(struct rte_eth_dev *dev, uint16_t queue);
int dray_rx_interrupt_disable(struct rte_eth_dev *dev, uint16_t queue);

/* tx.c */
eth_tx_burst_t dray_tx_choose(const struct rte_eth_dev *dev);
int dray_tx_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode);

/* stats.c */
int dray_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int dray_stats_reset(struct rte_eth_dev *dev);
int dray_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n);
int dray_xstats_get_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names,
			  unsigned int n);

#endif

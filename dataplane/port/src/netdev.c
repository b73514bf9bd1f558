/* SPDX-License-Identifier: Apache-2.0 */
/* Packets through AF_PACKET sockets, in private buffers. */
#include "netdev.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checksum.h"

#define BATCH 32
#define POOL_PACKETS 512
#define VLAN_BYTES 4
#define ETHERNET_BYTES 14
#define FLUSH_MAX 65536 /* frames */

struct net_owner {
	struct pool pool; /* first: an owner of this kind is a pool */
	int fd;
};

#define NET_OWNER(h) ((struct net_owner *)(h))

static unsigned net_alloc(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n,
			  uint32_t size)
{
	unsigned got = pool_take(&NET_OWNER(owner)->pool, pkts, n, size);

	if (got < n)
		count(owner->counters, COUNT_TX_NO_BUFFER, n - got);
	return got;
}

/* Insert a VLAN tag into the frame. */
static bool insert_tag(struct dray_pkt *p, uint16_t tpid, uint16_t tci)
{
	uint8_t *frame;

	if (p->length < ETHERNET_BYTES || p->headroom < VLAN_BYTES)
		return false;
	frame = dray_pkt_push(p, VLAN_BYTES);
	memmove(frame, frame + VLAN_BYTES, 12);
	frame[12] = (uint8_t)(tpid >> 8);
	frame[13] = (uint8_t)tpid;
	frame[14] = (uint8_t)(tci >> 8);
	frame[15] = (uint8_t)tci;
	return true;
}

/* Make a frame fit for a wire. false: it cannot be. */
static bool finish(const struct net_owner *h, struct dray_pkt *p)
{
	if (p->index >= h->pool.owner.slots || !h->pool.with_application[p->index] ||
	    p->length == 0 || p->length > p->room)
		return false;
	if (p->flags & DRAY_PKT_CSUM_NEEDED) {
		if (!checksum_fill(p->data, p->length))
			return false;
		p->flags &= (uint16_t)~DRAY_PKT_CSUM_NEEDED;
	}
	if (p->flags & DRAY_PKT_VLAN) {
		if (!insert_tag(p, ETH_P_8021Q, p->vlan))
			return false;
		p->flags &= (uint16_t)~DRAY_PKT_VLAN;
	}
	return true;
}

/*
 * Send a batch that is fit. Returns how many were consumed; a frame that the device refuses is
 * consumed and counted.
 */
static unsigned transmit(struct net_owner *h, struct dray_pkt *pkts, unsigned n)
{
	struct counters *c = h->pool.owner.counters;
	struct mmsghdr msgs[BATCH] = {0};
	struct iovec iov[BATCH];
	int sent;

	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){pkts[i].data, pkts[i].length};
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	sent = sendmmsg(h->fd, msgs, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0) {
		if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
			return 0;
		count(c, COUNT_TX_DROPPED, 1);
		pool_give_back(&h->pool.owner, pkts, 1);
		return 1;
	}
	for (int i = 0; i < sent; i++)
		count(c, COUNT_TX_BYTES, pkts[i].length);
	count(c, COUNT_TX_PACKETS, (uint64_t)sent);
	pool_give_back(&h->pool.owner, pkts, (unsigned)sent);
	return (unsigned)sent;
}

static unsigned net_send(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct net_owner *h = NET_OWNER(owner);
	unsigned done = 0, fit, used;

	while (done < n && pkts[done].owner == owner) {
		for (fit = 0; fit < BATCH && done + fit < n && pkts[done + fit].owner == owner &&
			      finish(h, &pkts[done + fit]);
		     fit++)
			;
		if (fit == 0) {
			count(owner->counters, COUNT_TX_DROPPED, 1);
			pool_give_back(owner, &pkts[done++], 1);
			continue;
		}
		used = transmit(h, &pkts[done], fit);
		done += used;
		if (used < fit)
			break;
	}
	return done;
}

/*
 * A tag that the kernel took out of the frame. Only one of 802.1Q is described apart, for a packet
 * has no room for another protocol; it goes back where it was. false: there is no room.
 */
static bool keep_tag(struct dray_pkt *p, const struct tpacket_auxdata *aux)
{
	if ((aux->tp_status & TP_STATUS_VLAN_TPID_VALID) && aux->tp_vlan_tpid != ETH_P_8021Q)
		return insert_tag(p, aux->tp_vlan_tpid, aux->tp_vlan_tci);
	p->flags |= DRAY_PKT_VLAN;
	p->vlan = aux->tp_vlan_tci;
	return true;
}

/* false: the frame cannot be described. */
static bool read_aux(struct msghdr *msg, struct dray_pkt *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct tpacket_auxdata aux;

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA ||
		    c->cmsg_len < CMSG_LEN(sizeof(aux)))
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (aux.tp_status & TP_STATUS_CSUMNOTREADY)
			p->flags |= DRAY_PKT_CSUM_NEEDED;
		else if (aux.tp_status & TP_STATUS_CSUM_VALID)
			p->flags |= DRAY_PKT_CSUM_GOOD;
		if ((aux.tp_status & TP_STATUS_VLAN_VALID) && !keep_tag(p, &aux))
			return false;
	}
	return true;
}

/* Keep the frames that came whole; returns how many there are. */
static unsigned keep(struct net_owner *h, struct mmsghdr *msgs, struct dray_pkt *pkts, unsigned n)
{
	struct counters *c = h->pool.owner.counters;
	uint64_t bytes = 0;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		pkts[i].length = msgs[i].msg_len;
		if (pkts[i].length == 0 || pkts[i].length > pkts[i].room ||
		    !read_aux(&msgs[i].msg_hdr, &pkts[i])) {
			count(c, COUNT_RX_DROPPED, 1);
			pool_give_back(&h->pool.owner, &pkts[i], 1);
			continue;
		}
		bytes += pkts[i].length;
		pkts[kept++] = pkts[i];
	}
	count(c, COUNT_RX_PACKETS, kept);
	count(c, COUNT_RX_BYTES, bytes);
	return kept;
}

static unsigned net_recv(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n)
{
	struct net_owner *h = NET_OWNER(owner);
	_Alignas(struct cmsghdr) char control[BATCH][CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct mmsghdr msgs[BATCH] = {0};
	struct iovec iov[BATCH];
	unsigned buffers = pool_take(&h->pool, pkts, n < BATCH ? n : BATCH, 1);
	int came;

	for (unsigned i = 0; i < buffers; i++) {
		iov[i] = (struct iovec){pkts[i].data, pkts[i].room};
		msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
						  .msg_iovlen = 1,
						  .msg_control = control[i],
						  .msg_controllen = sizeof(control[i])};
	}
	came = buffers ? recvmmsg(h->fd, msgs, buffers, MSG_DONTWAIT | MSG_TRUNC, NULL) : 0;
	if (came < 0)
		came = 0;
	pool_give_back(owner, pkts + came, buffers - (unsigned)came);
	return keep(h, msgs, pkts, (unsigned)came);
}

static bool readable(struct dray_owner *owner, short events)
{
	struct pollfd p = {.fd = NET_OWNER(owner)->fd, .events = events};

	return poll(&p, 1, 0) > 0;
}

static bool net_can_recv(struct dray_owner *owner)
{
	return readable(owner, POLLIN);
}

static bool net_can_send(struct dray_owner *owner)
{
	owner_drain(owner);
	return NET_OWNER(owner)->pool.free_packet_count > 0 && readable(owner, POLLOUT);
}

static const struct owner_ops net_tx_ops = {
	.alloc = net_alloc,
	.send = net_send,
	.give_back = pool_give_back,
	.ready = net_can_send,
};

static const struct owner_ops net_rx_ops = {
	.recv = net_recv,
	.give_back = pool_give_back,
	.ready = net_can_recv,
};

static int check_socket(int fd)
{
	int value, one = 1;
	socklen_t length = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) < 0 || value != AF_PACKET)
		return -EPROTO;
	length = sizeof(value);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) < 0 || value != SOCK_RAW)
		return -EPROTO;
	if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) < 0)
		return -errno;
	(void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	return 0;
}

static int make_owner(struct dray_port *port, struct generation *gen, unsigned q,
		      const struct owner_ops *ops, struct counters *counters,
		      struct dray_owner **owner)
{
	struct pool_shape shape = {.packets = POOL_PACKETS,
				   .packet_room = port->welcome.mtu + ETHERNET_BYTES + VLAN_BYTES};
	struct pool *pool;
	int ret = pool_new(&shape, ops, gen, counters,
			   sizeof(struct net_owner) - sizeof(struct pool), &pool);

	if (ret)
		return ret;
	*owner = &pool->owner;
	NET_OWNER(*owner)->fd = gen->bells[q];
	return 0;
}

/* From now on nothing more comes on the socket; what has come stays to be read. */
static void deafen(int fd)
{
	struct sock_filter nothing = {.code = BPF_RET | BPF_K};
	struct sock_fprog filter = {.len = 1, .filter = &nothing};

	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/*
 * While two generations have sockets on one device, both get every frame. The older keeps the
 * frames that came until now; the newer starts empty. Frames that come in between are lost, as in
 * any move of a device; none is delivered twice.
 */
static void take_over(struct dray_port *port, const struct generation *gen)
{
	bool older = false;

	for (const struct generation *o = port->generations; o; o = o->next) {
		if (o->kind != DRAY_LINK_NETDEV)
			continue;
		older = true;
		for (unsigned q = 0; q < o->queues; q++)
			deafen(o->bells[q]);
	}
	for (unsigned q = 0; older && q < gen->queues; q++)
		for (unsigned i = 0;
		     i < FLUSH_MAX && recv(gen->bells[q], NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0;
		     i++)
			;
}

int netdev_attach(struct dray_port *port, const struct wire_offer *offer, uint32_t number, int *fds,
		  unsigned count, struct generation **out)
{
	struct generation *gen = generation_new(DRAY_LINK_NETDEV, number);
	int ret = 0;

	if (!gen) {
		while (count)
			close(fds[--count]);
		return -ENOMEM;
	}
	for (unsigned q = 0; q < count; q++)
		gen->bells[q] = fds[q];
	gen->destroy_owner = pool_free;
	gen->queues = offer->queues;
	gen->packet_max = port->welcome.mtu + ETHERNET_BYTES + VLAN_BYTES;
	gen->packet_slots = POOL_PACKETS;
	for (unsigned q = 0; ret == 0 && q < gen->queues; q++) {
		ret = check_socket(gen->bells[q]);
		if (ret == 0)
			ret = make_owner(port, gen, q, &net_tx_ops, &port->queues[q].tx.counters,
					 &gen->tx[q]);
		if (ret == 0)
			ret = make_owner(port, gen, q, &net_rx_ops, &port->queues[q].rx.counters,
					 &gen->rx[q]);
	}
	if (ret) {
		generation_free(gen);
		return ret;
	}
	take_over(port, gen);
	*out = gen;
	return 0;
}

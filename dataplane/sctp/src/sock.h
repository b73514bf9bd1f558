/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket: one end of a pair of stream sockets for the application, the other for this library,
 * and usrsctp's socket. So the application's end works with select, poll, epoll and fcntl.
 *
 * What was received goes through the pair as frames. What is sent goes to usrsctp directly; the
 * application's end writes only a filler (sock_plug), which makes poll report that nothing can be
 * sent until the library reads it.
 */
#ifndef DRAY_SCTP_SOCK_H
#define DRAY_SCTP_SOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "kernel.h"

/* Descriptors that can be sockets; there are none beyond. */
#define SOCK_TABLE 65536

/* Of a message, or a part of one, on the pair. */
struct frame {
	uint32_t length;
	int flags; /* MSG_EOR, K_MSG_NOTIFICATION */
	struct k_rcvinfo info;
	struct sockaddr_storage from;
};

struct socket; /* usrsctp's */

struct sock {
	struct socket *so;
	int family, style;
	int lib; /* the library's end of the pair */

	/* Guarded by the table's lock. */
	unsigned fds, calls; /* descriptors, and calls under way */
	struct sock *next_free;

	pthread_mutex_t lock;  /* of all down to `changed` */
	bool listening, token; /* token: a byte on the pair says that accept has something */
	bool connecting;
	bool linked; /* one-to-one: has, or had, an association */
	bool plugged;
	bool bound;	    /* to certain addresses */
	uint16_t wire_port; /* and that is counted (wire.h) for this port */
	bool wants_rcvinfo;
	uint8_t events[K_EVENT_KINDS]; /* what was subscribed to */
	int error;		       /* SO_ERROR */
	uint32_t lost;		       /* one-to-many: the association that ended last, and why */
	int lost_error;
	int receive_ms, send_ms; /* -1: forever */
	pthread_cond_t changed;

	/* Guarded by `reading`: a frame that is only partly read. */
	pthread_mutex_t reading;
	struct frame frame;
	uint32_t unread;

	/* The pump's. */
	char *rest; /* of a frame that the pair had no room for */
	size_t rest_size, rest_sent;
	bool ended; /* the application gets no more */
	bool asked; /* to shut down */
	int64_t deadline;
	struct sock *next;

	_Atomic(bool) closing;
	bool over; /* closing is done; guarded by the table's lock */

	/* Guarded by the pump's lock. */
	bool marked;
	_Atomic(bool) listed;
	struct sock *next_marked;
};

/* A new socket; with `so`, around that one of usrsctp. -1 and errno. */
int sock_open(int family, int style, int flags, struct socket *so);

/* The socket of a descriptor, held until sock_put; NULL if it is none of this library. */
struct sock *sock_get(int fd);
void sock_put(struct sock *sock);

/* One more descriptor of the same socket. */
int sock_share(struct sock *sock, int fd);

/* The descriptor is being closed; with the last one the socket is. False if it is none of ours. */
bool sock_drop(int fd);

/* poll says that nothing can be sent; until the pump finds that something can. */
void sock_plug(struct sock *sock, int fd);
void sock_unplug(struct sock *sock);
void sock_unplug_locked(struct sock *sock);

/* Wait until poll says so: 0, or -errno (-EAGAIN: `ms` have passed). */
int sock_wait(struct sock *sock, int fd, short events, int ms);

/* It is bound to certain addresses: its packets keep the source that usrsctp gives them. */
void sock_bound(struct sock *sock);

/* The error that SO_ERROR gives, which is then 0. */
int sock_error(struct sock *sock);

/* Every socket shuts down its associations, and this waits for that, if not for long. */
void sock_end_all(void);

/*
 * For the pump. No association is left; neither descriptors nor calls are; free it; the
 * application's end was closed behind this library's back.
 */
void sock_over(struct sock *sock);
bool sock_unused(struct sock *sock);
void sock_bury(struct sock *sock);
void sock_vanished(struct sock *sock);

/* Around fork. */
void sock_before_fork(void);
void sock_after_fork(bool child);

#endif

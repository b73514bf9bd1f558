/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the replaced functions do on a socket of this library. Each returns as the function does,
 * or -errno. `fd` is the descriptor that the application used.
 */
#ifndef DRAY_SCTP_CALLS_H
#define DRAY_SCTP_CALLS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct sock;

/* connect.c */
int call_bind(struct sock *sock, const struct sockaddr *address, socklen_t size);
int call_bindx(struct sock *sock, const void *addresses, size_t size, bool add);
int call_listen(struct sock *sock, int backlog);
int call_connect(struct sock *sock, int fd, const struct sockaddr *address, socklen_t size);
int call_connectx(struct sock *sock, int fd, const void *addresses, size_t size, int32_t *id);
int call_accept(struct sock *sock, int fd, struct sockaddr *address, socklen_t *size, int flags);
int call_peeloff(struct sock *sock, int32_t id, int flags);
int call_shutdown(struct sock *sock, int how);
int call_getsockname(struct sock *sock, struct sockaddr *address, socklen_t *size);
int call_getpeername(struct sock *sock, struct sockaddr *address, socklen_t *size);

/* options.c */
int call_setsockopt(struct sock *sock, int fd, int level, int option, const void *value,
		    socklen_t size);
/* options_read.c */
int call_getsockopt(struct sock *sock, int fd, int level, int option, void *value, socklen_t *size);

/* send.c, receive.c */
ssize_t call_send(struct sock *sock, int fd, const struct msghdr *message, int flags);
ssize_t call_receive(struct sock *sock, int fd, struct msghdr *message, int flags);

/* Whether a call on this descriptor waits. */
bool call_waits(int fd, int flags);

#endif

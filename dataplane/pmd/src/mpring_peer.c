/* SPDX-License-Identifier: Apache-2.0 */
/* net_mpring: its arguments, and the connection by which each process sees the other end. */
#include <errno.h>
#include <rte_kvargs.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpring.h"

static int take_role(const char *key, const char *value, void *opaque)
{
	struct mpring_arguments *a = opaque;

	a->primary = value && strcmp(value, "primary") == 0;
	if (a->primary || (value && strcmp(value, "secondary") == 0))
		return 0;
	MPRING_LOG(ERR, "%s= takes primary or secondary\n", key);
	return -EINVAL;
}

static int take_text(const char *key, const char *value, char *to, size_t size)
{
	int n = value ? snprintf(to, size, "%s", value) : 0;

	if (n > 0 && (size_t)n < size)
		return 0;
	MPRING_LOG(ERR, "%s= takes 1 to %zu characters\n", key, size - 1);
	return -EINVAL;
}

static int take_ring(const char *key, const char *value, void *opaque)
{
	struct mpring_arguments *a = opaque;

	return take_text(key, value, a->ring, sizeof(a->ring));
}

static int take_socket(const char *key, const char *value, void *opaque)
{
	struct mpring_arguments *a = opaque;

	return take_text(key, value, a->socket, sizeof(a->socket));
}

static int take_mac(const char *key, const char *value, void *opaque)
{
	struct mpring_arguments *a = opaque;

	if (value && rte_ether_unformat_addr(value, &a->mac) == 0)
		return 0;
	MPRING_LOG(ERR, "%s= takes an address such as 02:00:00:00:00:01\n", key);
	return -EINVAL;
}

static const struct {
	const char *key;
	arg_handler_t take;
	bool needed;
} takers[] = {{"role", take_role, true},
	      {"socket", take_socket, true},
	      {"ring", take_ring, false},
	      {"mac", take_mac, false}};

int mpring_arguments_read(const char *text, struct mpring_arguments *a)
{
	static const char *const keys[] = {"role", "socket", "ring", "mac", NULL};
	struct rte_kvargs *kvargs = text ? rte_kvargs_parse(text, keys) : NULL;
	int ret = 0;

	*a = (struct mpring_arguments){.ring = "link"};
	rte_eth_random_addr(a->mac.addr_bytes);
	if (!kvargs) {
		MPRING_LOG(ERR,
			   "'%s' is not "
			   "role=primary|secondary,socket=PATH[,ring=NAME][,mac=ADDRESS]\n",
			   text ? text : "");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < RTE_DIM(takers); i++) {
		unsigned int n = rte_kvargs_count(kvargs, takers[i].key);

		if (n > 1 || (n == 0 && takers[i].needed)) {
			MPRING_LOG(ERR, "%s= is %s\n", takers[i].key,
				   n ? "given more than once" : "missing");
			ret = -EINVAL;
		}
		if (rte_kvargs_process(kvargs, takers[i].key, takers[i].take, a) < 0)
			ret = -EINVAL;
	}
	rte_kvargs_free(kvargs);
	return ret;
}

/*
 * A socket that an earlier primary process left would keep its successor from binding. Its owner is
 * dead, since EAL lets no second primary process start.
 */
static int listen_at(int fd, const struct sockaddr_un *at)
{
	if (unlink(at->sun_path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 4) < 0)
		return -errno;
	return 0;
}

/* The last process to connect is the live secondary process. */
static void accept_all(void *opaque)
{
	struct mpring_peer *p = opaque;
	int fd;

	rte_spinlock_lock(&p->lock);
	while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (p->connection >= 0)
			close(p->connection);
		p->connection = fd;
	}
	rte_spinlock_unlock(&p->lock);
}

/* Connections are accepted even if the application never reads the link's state. */
static int take_calls(struct mpring_peer *p)
{
	int ret;

	p->calls = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!p->calls)
		return -ENOMEM;
	ret = rte_intr_fd_set(p->calls, p->listener);
	if (ret == 0)
		ret = rte_intr_type_set(p->calls, RTE_INTR_HANDLE_EXT);
	if (ret == 0)
		ret = rte_intr_callback_register(p->calls, accept_all, p);
	if (ret < 0) {
		rte_intr_instance_free(p->calls);
		p->calls = NULL;
	}
	return ret;
}

static int make_socket(const struct mpring_peer *p, struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s", p->socket);
	return fd < 0 ? -errno : fd;
}

int mpring_peer_open(struct mpring_peer *p, const struct mpring_arguments *a)
{
	struct sockaddr_un at;
	int fd, ret;

	*p = (struct mpring_peer){.listener = -1, .connection = -1};
	rte_spinlock_init(&p->lock);
	snprintf(p->socket, sizeof(p->socket), "%s", a->socket);
	if (!a->primary)
		return 0;
	fd = make_socket(p, &at);
	if (fd < 0)
		return fd;
	p->listener = fd;
	ret = listen_at(fd, &at);
	if (ret == 0)
		ret = take_calls(p);
	if (ret) {
		close(fd);
		p->listener = -1;
	}
	return ret;
}

static void hang_up(struct mpring_peer *p)
{
	rte_spinlock_lock(&p->lock);
	if (p->connection >= 0)
		close(p->connection);
	p->connection = -1;
	rte_spinlock_unlock(&p->lock);
}

int mpring_peer_start(struct mpring_peer *p)
{
	struct sockaddr_un at;
	int fd, ret;

	if (p->listener >= 0)
		return 0;
	hang_up(p);
	fd = make_socket(p, &at);
	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	rte_spinlock_lock(&p->lock);
	p->connection = fd;
	rte_spinlock_unlock(&p->lock);
	return 0;
}

void mpring_peer_stop(struct mpring_peer *p)
{
	if (p->listener < 0)
		hang_up(p);
}

bool mpring_peer_there(struct mpring_peer *p)
{
	char byte;
	bool there = false;

	rte_spinlock_lock(&p->lock);
	if (p->connection >= 0) {
		there = recv(p->connection, &byte, sizeof(byte), MSG_DONTWAIT) < 0 &&
			(errno == EAGAIN || errno == EINTR);
		if (!there) {
			close(p->connection);
			p->connection = -1;
		}
	}
	rte_spinlock_unlock(&p->lock);
	return there;
}

void mpring_peer_close(struct mpring_peer *p)
{
	if (p->calls) {
		rte_intr_callback_unregister_sync(p->calls, accept_all, p);
		rte_intr_instance_free(p->calls);
		p->calls = NULL;
	}
	if (p->connection >= 0)
		close(p->connection);
	if (p->listener >= 0) {
		(void)unlink(p->socket);
		close(p->listener);
	}
	p->listener = p->connection = -1;
}

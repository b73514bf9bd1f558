/* SPDX-License-Identifier: Apache-2.0 */
/* Bells that no descriptor gets into, and closing those that one may have got into. */
#include "rights.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_MAX 128	   /* sockets: eight generations of sixteen queues */
#define DISCARD_ROOM 1024  /* and those of the generations that are there when it is reached */
#define STACK_BYTES 131072 /* of the thread */

static bool is_empty(int bell)
{
	char byte;

	return recv(bell, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool rights_refuse(int bell)
{
	int zero = 0;

	if (setsockopt(bell, SOL_SOCKET, SO_PASSRIGHTS, &zero, sizeof(zero)) < 0)
		return false; /* only looks help */
	/*
	 * A sender that read the option before may still be about to queue its message. It has the
	 * socket's lock from one to the other, and a look that finds nothing waits for that lock
	 * afterwards: so the second look sees that message.
	 */
	return is_empty(bell) && is_empty(bell);
}

/*
 * A look takes references of its own to the attached descriptors. There is no place for them, so
 * they are dropped here; the ring still has its own, so none of them is the last.
 */
bool rights_attached(int bell, bool *empty)
{
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	*empty = recvmsg(bell, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC) < 0;
	return !*empty && (msg.msg_flags & MSG_CTRUNC);
}

struct discarder {
	struct discarder *next;
	pid_t process;	/* a child of fork has no thread of its parent */
	unsigned users; /* ports, and the thread */
	bool running;
	unsigned waiting;
	int sockets[DISCARD_ROOM];
	char path[108];
};

/* One per path: an application that opens a port again and again gets no further threads. */
static struct discarder *discarders;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that is in them */

static struct discarder *find(const char *path)
{
	for (struct discarder *d = discarders; d; d = d->next)
		if (d->process == getpid() && strcmp(d->path, path) == 0)
			return d;
	return NULL;
}

static struct discarder *make(const char *path)
{
	struct discarder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->process = getpid();
	strncpy(d->path, path, sizeof(d->path) - 1);
	d->next = discarders;
	discarders = d;
	return d;
}

struct discarder *discarder_get(const char *path)
{
	struct discarder *d;

	pthread_mutex_lock(&lock);
	d = find(path);
	if (!d)
		d = make(path);
	if (d)
		d->users++;
	pthread_mutex_unlock(&lock);
	return d;
}

/* The lock is held. */
static void put(struct discarder *d)
{
	struct discarder **link = &discarders;

	if (--d->users)
		return;
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	free(d);
}

void discarder_put(struct discarder *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&lock);
	put(d);
	pthread_mutex_unlock(&lock);
}

bool discarder_full(struct discarder *d)
{
	bool full;

	pthread_mutex_lock(&lock);
	full = d->waiting >= DISCARD_MAX;
	pthread_mutex_unlock(&lock);
	return full;
}

static void *run(void *argument)
{
	struct discarder *d = argument;

	pthread_mutex_lock(&lock);
	while (d->waiting) {
		int fd = d->sockets[--d->waiting];

		pthread_mutex_unlock(&lock);
		close(fd);
		pthread_mutex_lock(&lock);
	}
	d->running = false;
	put(d);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A detached thread that takes no signals of the application. */
static bool start(struct discarder *d)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	bool started;

	if (pthread_attr_init(&attributes))
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
		  pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
		  pthread_create(&thread, &attributes, run, d) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

/* Without room, or a thread, the socket stays open: to wait for a peer would be worse. */
void discard(struct discarder *d, int fd)
{
	(void)shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&lock);
	if (d->waiting < DISCARD_ROOM)
		d->sockets[d->waiting++] = fd;
	if (!d->running) {
		d->users++;
		d->running = start(d);
		if (!d->running)
			put(d);
	}
	pthread_mutex_unlock(&lock);
}

void discard_all(struct discarder *d, const int *fds, unsigned count)
{
	while (count)
		discard(d, fds[--count]);
}

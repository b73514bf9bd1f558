/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for all sockets. usrsctp calls pump_mark when a socket may have something; the thread
 * then reads from usrsctp as long as the application's end has room, so usrsctp closes the
 * receive window of a peer whose messages the application does not read.
 *
 * usrsctp calls for packets, not for all that its timers do, hence the look at every socket each
 * LOOK_MS. It does not say either that a one-to-many socket can send again: see SPACE_MS.
 */
#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

#include "notice.h"
#include "real.h"
#include "sock.h"
#include "start.h"

#define BUFFER (256 * 1024) /* bytes read at once: all that usrsctp's receive buffer holds */
#define LOOK_MS 100
#define SPACE_MS 5 /* a socket that has no room to send is tried again so often */
#define LINGER_MS                                                                                  \
	10000 /* after close, an association has so long to end; then usrsctp has it alone */

static struct {
	pthread_mutex_t lock;
	struct sock *marked;
	struct sock *all; /* the thread removes; others add, at the head */
	bool plugged;
	int epoll, wake;
} pump = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wake(void)
{
	uint64_t one = 1;

	/* A full counter wakes as well. */
	if (REAL(write)(pump.wake, &one, sizeof(one)) < 0)
		return;
}

void pump_mark(struct sock *sock)
{
	bool first = false;

	pthread_mutex_lock(&pump.lock);
	if (!sock->marked) {
		first = !pump.marked;
		sock->marked = true;
		sock->next_marked = pump.marked;
		pump.marked = sock;
	}
	pthread_mutex_unlock(&pump.lock);
	if (first)
		wake();
}

void pump_plugged(void)
{
	bool first;

	pthread_mutex_lock(&pump.lock);
	first = !pump.plugged;
	pump.plugged = true;
	pthread_mutex_unlock(&pump.lock);
	if (first)
		wake();
}

static struct sock *next_marked(void)
{
	struct sock *sock;

	pthread_mutex_lock(&pump.lock);
	sock = pump.marked;
	if (sock) {
		pump.marked = sock->next_marked;
		sock->marked = false;
	}
	pthread_mutex_unlock(&pump.lock);
	return sock;
}

static struct sock *first_of_all(void)
{
	struct sock *sock;

	pthread_mutex_lock(&pump.lock);
	sock = pump.all;
	pthread_mutex_unlock(&pump.lock);
	return sock;
}

static void watch(struct sock *sock, bool room)
{
	/* Of the application's end only that it was closed, and, once, that it has room. */
	struct epoll_event event = {.events = EPOLLET | EPOLLRDHUP | (room ? EPOLLOUT : 0),
				    .data.ptr = sock};

	epoll_ctl(pump.epoll, EPOLL_CTL_MOD, sock->lib, &event);
}

int pump_add(struct sock *sock)
{
	struct epoll_event event = {.events = EPOLLET | EPOLLRDHUP, .data.ptr = sock};

	if (epoll_ctl(pump.epoll, EPOLL_CTL_ADD, sock->lib, &event) < 0)
		return -errno;
	pthread_mutex_lock(&pump.lock);
	sock->next = pump.all;
	pump.all = sock;
	sock->listed = true;
	pthread_mutex_unlock(&pump.lock);
	return 0;
}

/* The application gets no more: recv returns `error`, or 0 for the end. */
static void end_input_locked(struct sock *sock, int error)
{
	if (error)
		sock->error = error;
	sock->connecting = false;
	sock->ended = true;
	sock_unplug_locked(sock);
	REAL(shutdown)(sock->lib, error ? SHUT_RDWR : SHUT_WR);
	pthread_cond_broadcast(&sock->changed);
}

static void end_input(struct sock *sock, int error)
{
	pthread_mutex_lock(&sock->lock);
	end_input_locked(sock, error);
	pthread_mutex_unlock(&sock->lock);
}

/* Write the rest of a frame: true if none is left. */
static bool flush(struct sock *sock)
{
	ssize_t n;

	while (sock->rest_sent < sock->rest_size) {
		n = REAL(send)(sock->lib, sock->rest + sock->rest_sent,
			       sock->rest_size - sock->rest_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			break;
		sock->rest_sent += (size_t)n;
	}
	if (sock->rest_sent < sock->rest_size && errno == EAGAIN) {
		watch(sock, true);
		return false;
	}
	free(sock->rest);
	sock->rest = NULL;
	sock->rest_size = sock->rest_sent = 0;
	return true;
}

/* Keep what is left of head and data after `sent` bytes. False: no memory. */
static bool keep(struct sock *sock, const struct frame *head, const char *data, size_t sent)
{
	size_t size = sizeof(*head) + head->length - sent, of_head = 0;

	sock->rest = malloc(size);
	if (!sock->rest)
		return false;
	if (sent < sizeof(*head)) {
		of_head = sizeof(*head) - sent;
		memcpy(sock->rest, (const char *)head + sent, of_head);
		sent = sizeof(*head);
	}
	memcpy(sock->rest + of_head, data + (sent - sizeof(*head)), size - of_head);
	sock->rest_size = size;
	sock->rest_sent = 0;
	watch(sock, true);
	return true;
}

static void deliver(struct sock *sock, const struct frame *head, char *data)
{
	union {
		const void *from;
		void *to;
	} of_head = {.from = head};
	struct iovec parts[2] = {{of_head.to, sizeof(*head)}, {data, head->length}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n = REAL(sendmsg)(sock->lib, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return; /* the application's end is gone */
	if (n < 0)
		n = 0;
	if ((size_t)n < sizeof(*head) + head->length && !keep(sock, head, data, (size_t)n))
		end_input(sock, ENOBUFS);
}

static void notify(struct sock *sock, struct frame *head, const char *data, size_t size)
{
	static char out[BUFFER + NOTICE_MORE]; /* the thread's */
	uint8_t events[K_EVENT_KINDS];
	struct notice_end end;

	pthread_mutex_lock(&sock->lock);
	memcpy(events, sock->events, sizeof(events));
	pthread_mutex_unlock(&sock->lock);
	head->length = (uint32_t)notice_translate(data, size, events, out, &end);
	if (end.id) {
		debug("association %u ended: %s", end.id,
		      end.error ? strerror(end.error) : "shut down");
	}
	pthread_mutex_lock(&sock->lock);
	if (end.id) {
		sock->lost = end.id;
		sock->lost_error = end.error;
	}
	pthread_cond_broadcast(&sock->changed);
	pthread_mutex_unlock(&sock->lock);
	head->flags |= K_MSG_NOTIFICATION;
	if (head->length > 0)
		deliver(sock, head, out);
}

static void describe(struct frame *head, const struct sctp_rcvinfo *info)
{
	head->info = (struct k_rcvinfo){.sid = info->rcv_sid,
					.ssn = info->rcv_ssn,
					.flags = info->rcv_flags & SCTP_UNORDERED ? K_UNORDERED : 0,
					.ppid = info->rcv_ppid,
					.tsn = info->rcv_tsn,
					.cumtsn = info->rcv_cumtsn,
					.context = info->rcv_context,
					.assoc_id = (int32_t)info->rcv_assoc_id};
}

/* One piece of usrsctp's to the application: 1, 0 if there is none, -1 at the end. */
static int move_one(struct sock *sock)
{
	static char buffer[BUFFER];
	struct frame head = {0};
	struct sctp_rcvinfo info = {0};
	socklen_t from = sizeof(head.from), size = sizeof(info);
	unsigned type = SCTP_RECVV_NOINFO;
	int flags = 0;
	ssize_t n = usrsctp_recvv(sock->so, buffer, sizeof(buffer), (struct sockaddr *)&head.from,
				  &from, &info, &size, &type, &flags);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		/* A one-to-many socket has no end. */
		if (sock->style == SOCK_STREAM)
			end_input(sock, n < 0 ? errno : 0);
		return -1;
	}
	head.length = (uint32_t)n;
	head.flags = flags & MSG_EOR ? MSG_EOR : 0;
	if (flags & MSG_NOTIFICATION) {
		notify(sock, &head, buffer, (size_t)n);
		return 1;
	}
	if (type == SCTP_RECVV_RCVINFO)
		describe(&head, &info);
	if (!atomic_load(&sock->closing))
		deliver(sock, &head, buffer);
	return 1;
}

static void move(struct sock *sock)
{
	while (!sock->ended && flush(sock) && move_one(sock) > 0)
		;
}

static bool established(struct sock *sock)
{
	struct sctp_status status = {0};
	socklen_t size = sizeof(status);

	return usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_STATUS, &status, &size) == 0 &&
	       status.sstat_state != SCTP_CLOSED && status.sstat_state != SCTP_COOKIE_WAIT &&
	       status.sstat_state != SCTP_COOKIE_ECHOED;
}

/* How a connect that is under way went. */
static void settle(struct sock *sock, int events)
{
	int error = 0;
	socklen_t size = sizeof(error);

	pthread_mutex_lock(&sock->lock);
	if (sock->connecting && events & SCTP_EVENT_ERROR) {
		usrsctp_getsockopt(sock->so, SOL_SOCKET, SO_ERROR, &error, &size);
		debug("connect: %s", strerror(error));
		end_input_locked(sock, error ? error : ECONNREFUSED);
	} else if (sock->connecting && established(sock)) {
		sock->connecting = false;
		sock->linked = true;
		sock_unplug_locked(sock);
		pthread_cond_broadcast(&sock->changed);
	}
	pthread_mutex_unlock(&sock->lock);
}

/*
 * Under the lock of a listening one-to-one socket: one byte while accept has something. It asks
 * usrsctp again, since accept may have taken the last association meanwhile.
 */
static void announce(struct sock *sock)
{
	if (sock->token || !(usrsctp_get_events(sock->so) & SCTP_EVENT_READ))
		return;
	sock->token = REAL(send)(sock->lib, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static void serve(struct sock *sock, bool timer)
{
	int events = usrsctp_get_events(sock->so);
	bool listening;

	settle(sock, events);
	pthread_mutex_lock(&sock->lock);
	listening = sock->listening && sock->style == SOCK_STREAM;
	if (listening)
		announce(sock);
	if (sock->plugged && !sock->connecting && (timer || events & SCTP_EVENT_WRITE))
		sock_unplug_locked(sock);
	pthread_mutex_unlock(&sock->lock);
	if (!listening && (sock->linked || sock->style == SOCK_SEQPACKET))
		move(sock);
}

/* The application closed the socket: its associations end as they do in Linux. */
static void ask(struct sock *sock)
{
	struct sctp_sndinfo info = {.snd_flags = SCTP_EOF};
	uint32_t ids[1 + 1024] = {0};
	socklen_t size = sizeof(ids);

	if (sock->style == SOCK_STREAM) {
		usrsctp_shutdown(sock->so, SHUT_WR);
		return;
	}
	usrsctp_listen(sock->so, 0);
	if (usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, ids, &size) < 0)
		return;
	for (uint32_t i = 0; i < ids[0] && i < 1024; i++) {
		info.snd_assoc_id = ids[1 + i];
		usrsctp_sendv(sock->so, "", 0, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
	}
}

static bool has_associations(struct sock *sock)
{
	struct sctp_status status = {0};
	uint32_t number = 0;
	socklen_t size = sizeof(number);

	if (sock->listening && sock->style == SOCK_STREAM)
		return false;
	if (sock->style == SOCK_SEQPACKET)
		return usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &number,
					  &size) == 0 &&
		       number > 0;
	size = sizeof(status);
	return usrsctp_getsockopt(sock->so, IPPROTO_SCTP, SCTP_STATUS, &status, &size) == 0;
}

/* SO_LINGER with a time of 0: usrsctp_close sends ABORT. */
static bool aborts(struct sock *sock)
{
	struct linger linger = {0};
	socklen_t size = sizeof(linger);

	return usrsctp_getsockopt(sock->so, SOL_SOCKET, SO_LINGER, &linger, &size) == 0 &&
	       linger.l_onoff && linger.l_linger == 0;
}

static void unlist(struct sock *sock)
{
	struct sock **at;

	pthread_mutex_lock(&pump.lock);
	for (at = &pump.all; *at && *at != sock; at = &(*at)->next)
		;
	if (*at)
		*at = sock->next;
	sock->listed = false;
	pthread_mutex_unlock(&pump.lock);
}

static void close_down(struct sock *sock)
{
	char thrown_away[4096];
	struct sctp_rcvinfo info;
	socklen_t size;
	unsigned type;
	int flags;

	if (!sock->asked) {
		sock->asked = true;
		sock->deadline = now_ms() + LINGER_MS;
		if (has_associations(sock) && !aborts(sock))
			ask(sock);
		else
			sock->deadline = 0;
	}
	do {
		size = sizeof(info);
		flags = 0;
	} while (!sock->listening && usrsctp_recvv(sock->so, thrown_away, sizeof(thrown_away), NULL,
						   NULL, &info, &size, &type, &flags) > 0);
	if (now_ms() < sock->deadline && has_associations(sock))
		return;
	sock_over(sock);
	if (!sock_unused(sock))
		return;
	unlist(sock);
	sock_bury(sock);
}

static void visit(struct sock *sock, bool timer)
{
	if (!sock->listed)
		return; /* marked late: it is gone */
	if (atomic_load(&sock->closing))
		close_down(sock);
	else
		serve(sock, timer);
}

static void visit_all(void)
{
	struct sock *next;

	for (struct sock *sock = first_of_all(); sock; sock = next) {
		next = sock->next; /* others only add at the head */
		visit(sock, true);
	}
}

static int timeout(void)
{
	int ms;

	pthread_mutex_lock(&pump.lock);
	ms = !pump.all ? -1 : pump.plugged ? SPACE_MS : LOOK_MS;
	pthread_mutex_unlock(&pump.lock);
	return ms;
}

static void on_event(const struct epoll_event *event)
{
	struct sock *sock = event->data.ptr;
	uint64_t count;

	if (!sock) {
		if (REAL(read)(pump.wake, &count, sizeof(count)) < 0)
			return;
		return;
	}
	if (event->events & EPOLLOUT)
		watch(sock, false);
	if (event->events & (EPOLLHUP | EPOLLRDHUP) && sock->listed && !sock->ended)
		sock_vanished(sock);
	visit(sock, false);
}

static void *run(void *unused)
{
	struct epoll_event events[64];
	struct sock *sock;
	int64_t looked = now_ms();

	(void)unused;
	pthread_setname_np(pthread_self(), "dray-sctp");
	for (;;) {
		int wait = timeout(), n = epoll_wait(pump.epoll, events, 64, wait);

		for (int i = 0; i < n; i++)
			on_event(&events[i]);
		while ((sock = next_marked()))
			visit(sock, false);
		if (wait < 0 || now_ms() - looked < wait)
			continue;
		looked = now_ms();
		pthread_mutex_lock(&pump.lock);
		pump.plugged = false;
		pthread_mutex_unlock(&pump.lock);
		visit_all();
	}
	return NULL;
}

int pump_start(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t thread;
	int error;

	pump.epoll = epoll_create1(EPOLL_CLOEXEC);
	pump.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pump.epoll < 0 || pump.wake < 0 ||
	    epoll_ctl(pump.epoll, EPOLL_CTL_ADD, pump.wake, &event) < 0)
		return -errno;
	error = pthread_create(&thread, NULL, run, NULL);
	if (error == 0)
		pthread_detach(thread);
	return -error;
}

void pump_before_fork(void)
{
	pthread_mutex_lock(&pump.lock);
}

void pump_after_fork(void)
{
	pthread_mutex_unlock(&pump.lock);
}

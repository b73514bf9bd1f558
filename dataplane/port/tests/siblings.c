/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs that have two links between them, and first wait each for the other's one: while a
 * thread waits on a port, the handshakes of the others go on.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "test.h"

#define WAIT_MS 60000

/* A program that opens its ports in turn, and waits on the port `first`. */
struct end {
	struct broker *const *brokers;
	const char *name;
	unsigned first;
	uint32_t mode;
	int other; /* a socket to the other program */
};

static void meet(const struct end *end)
{
	struct dray_port *ports[2];
	char done = 0;

	for (unsigned i = 0; i < 2; i++)
		ports[i] = test_open(end->brokers[i], end->name, end->mode, 0);
	CHECK_EQ(dray_wait(ports[end->first], 0, DRAY_WAIT_TX, WAIT_MS), DRAY_WAIT_TX);
	CHECK_EQ(dray_wait(ports[!end->first], 0, DRAY_WAIT_TX, WAIT_MS), DRAY_WAIT_TX);
	CHECK_EQ(write(end->other, &done, 1), 1);
	CHECK_EQ(read(end->other, &done, 1), 1); /* the links stay until both have seen them */
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(dray_close(ports[i]), 0);
}

/* The other program is a child: what this one serves is not served there. */
static void two_links(uint32_t mode)
{
	struct broker *brokers[] = {broker_fork(NULL), broker_fork(NULL)};
	int status, pair[2];
	pid_t child;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		meet(&(struct end){brokers, "b", 1, mode, pair[1]});
		_exit(0);
	}
	meet(&(struct end){brokers, "a", 0, mode, pair[0]});
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (unsigned i = 0; i < 2; i++) {
		broker_stop(brokers[i]);
		close(pair[i]);
	}
}

/* A child of fork has none of its parent's ports to serve, and may have its own. */
static void child_of_fork(void)
{
	struct broker *broker = broker_fork(NULL), *other = broker_fork(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		struct dray_port *b = test_open(other, "b", DRAY_MODE_SLEEPING, 0);

		CHECK_EQ(dray_wait(b, 0, DRAY_WAIT_TX, 50), 0);
		CHECK_EQ(dray_wait(a, 0, DRAY_WAIT_TX, 50), -EBADF);
		CHECK_EQ(dray_close(b), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
	broker_stop(other);
}

/* One thread waits on a port again and again, while others come and go in another thread. */
static void *come_and_go(void *argument)
{
	struct broker *broker = argument;

	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(dray_close(test_open(broker, "a", DRAY_MODE_SLEEPING, 0)), 0);
	return NULL;
}

static void closing(void)
{
	struct broker *broker = broker_start(NULL), *other = broker_start(NULL);
	struct dray_port *a = test_open(broker, "a", DRAY_MODE_SLEEPING, 0);
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, come_and_go, other), 0);
	while (pthread_tryjoin_np(thread, NULL) != 0)
		CHECK_EQ(dray_wait(a, 0, DRAY_WAIT_TX, 1), 0);
	CHECK_EQ(dray_close(a), 0);
	broker_stop(broker);
	broker_stop(other);
}

int main(void)
{
	two_links(DRAY_MODE_SLEEPING);
	two_links(DRAY_MODE_ADAPTIVE);
	two_links(DRAY_MODE_BUSY);
	child_of_fork();
	closing();
	return 0;
}

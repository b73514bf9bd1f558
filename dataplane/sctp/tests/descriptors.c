/* SPDX-License-Identifier: Apache-2.0 */
/* dup, fork, close_range, and what a child process can do. */
#include "rig.h"

#include <fcntl.h>
#include <sys/wait.h>

static void server(void)
{
	int listener = rig_listen(SOCK_STREAM, PORT), fd, second, third;
	char text[8];

	rig_meet();
	fd = accept(listener, NULL, NULL);
	second = dup(fd);
	third = fcntl(fd, F_DUPFD_CLOEXEC, 50);
	CHECK(second >= 0 && third >= 50);
	CHECK_EQ(close(fd), 0);
	CHECK_EQ(recv(second, text, sizeof(text), 0), 4);
	CHECK_EQ(send(third, text, 4, 0), 4);
	CHECK_EQ(close(second), 0);
	CHECK_EQ(recv(third, text, sizeof(text), 0), 4);
	rig_meet();
	CHECK_EQ(recv(third, text, sizeof(text), 0), 0);
	CHECK_EQ(close(third), 0);
	fd = accept(listener, NULL, NULL);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0); /* closed by close_range */
	fd = accept(listener, NULL, NULL);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0); /* by dup2 onto it */
}

/* The child's copy is dead, and its end leaves the parent's association alone. */
static void forked(int fd)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		char byte;

		CHECK_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
		CHECK_EQ(send(fd, "x", 1, MSG_NOSIGNAL), -1);
		CHECK_EQ(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), -1);
		CHECK_EQ(errno, EPROTONOSUPPORT);
		CHECK_EQ(close(fd), 0);
		_exit(0); /* LeakSanitizer would look for threads that this process does not have */
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

static void client(void)
{
	char text[8];
	int fd, pipes[2];

	rig_meet();
	fd = rig_connect(PORT);
	CHECK_EQ(send(fd, "dup1", 4, 0), 4);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 4);
	forked(fd);
	CHECK_EQ(send(fd, "fork", 4, 0), 4);
	rig_meet();
	CHECK_EQ(close(fd), 0);
	fd = rig_connect(PORT);
	CHECK_EQ(close_range((unsigned)fd, (unsigned)fd, 0), 0);
	fd = rig_connect(PORT);
	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(dup2(pipes[1], fd), fd);
	CHECK_EQ(write(fd, "pipe", 4), 4);
	CHECK_EQ(read(pipes[0], text, sizeof(text)), 4);
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// processes run the commands of exec on this machine. There is no terminal: of a tty only the size is reported.
type processes struct{}

func (processes) ExecInContainer(ctx context.Context, pod, uid, container string, command []string,
	in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, timeout time.Duration) error {
	if tty {
		if size, ok := <-resize; ok {
			fmt.Fprintf(out, "size %dx%d\r\n", size.Width, size.Height)
		}
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	if out != nil {
		process.Stdout = out
	}
	if errOut != nil {
		process.Stderr = errOut
	}
	if in != nil {
		// Not process.Stdin: Wait would wait for its copying after the process has ended.
		pipe, err := process.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer pipe.Close()
			_, _ = io.Copy(pipe, in)
		}()
	}
	err := process.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Exited() {
		return utilexec.CodeExitError{Err: err, Code: ended.ExitCode()}
	}
	return err
}

// AttachContainer sends a greeting and echoes its input until stdin ends.
func (processes) AttachContainer(ctx context.Context, pod, uid, container string,
	in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if errOut != nil {
		fmt.Fprintln(errOut, "attached to "+container)
	}
	if in == nil || out == nil {
		return nil
	}
	_, err := io.Copy(out, in)
	return err
}

// localPorts are the ports of this machine.
type localPorts struct{}

func (localPorts) PortForward(ctx context.Context, pod, uid string, port int32, stream io.ReadWriteCloser) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
		done <- err
	}()
	if _, err := io.Copy(stream, conn); err != nil {
		return err
	}
	// The client may keep its side open although the peer is gone.
	select {
	case err = <-done:
	default:
	}
	return err
}

"""A kernel of your own in a PyTorch model, with a gradient, in one graph of torch.compile.

Run it: python tutorials/03_pytorch.py (PyTorch is needed: pip install torch). It trains on the CPU; with device="cuda"
the same lines train on a GPU.
"""

import torch

import helve
import helve.torch
from helve import T

M, N = T.dyn("M"), T.dyn("N")


# An activation that PyTorch does not have: x * |x|. Its derivative is 2 * |x|.
@T.prim_func
def signed_square(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            Y[i, j] = X[i, j] * T.abs(X[i, j])


# The names say what is what: X is the input of the forward pass, DY comes in, DX is the result.
@T.prim_func
def signed_square_backward(X: T.Tensor((M, N), "float32"), DY: T.Tensor((M, N), "float32"),
                           DX: T.Tensor((M, N), "float32")):
    with T.Kernel(M) as i:
        for j in T.Parallel(N):
            DX[i, j] = 2.0 * T.abs(X[i, j]) * DY[i, j]


activation = helve.torch.op("tutorial::signed_square", signed_square, out="Y", backward=signed_square_backward)


class Block(torch.nn.Module):
    """A norm of the kernel library, a layer of PyTorch, the activation above."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.inner = torch.nn.Linear(width, 2 * width)
        self.outer = torch.nn.Linear(2 * width, classes)

    def forward(self, x, target):
        hidden = activation(self.inner(helve.torch.rms_norm(x, self.weight)))
        return helve.torch.cross_entropy(self.outer(hidden), target)


def main(steps: int = 60, device: str = "cpu", backend: str = "aot_eager") -> None:
    print(f"the operator: {activation._schema}")
    x = torch.randn(8, 16, requires_grad=True)
    wanted, = torch.autograd.grad((x * x.abs()).sum(), x)
    got, = torch.autograd.grad(activation(x).sum(), x)
    print(f"largest difference of its gradient from autograd's: {(got - wanted).abs().max().item():.0e}")
    print(f"opcheck: {', '.join(sorted(set(torch.library.opcheck(activation, (x,)).values())))}")

    torch.manual_seed(0)
    model = Block(width=16, classes=4).to(device)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    data = torch.randn(256, 16, device=device)
    target = (data[:, 0] > 0).long() + 2 * (data[:, 1] > 0).long()
    for step in range(steps + 1):
        loss = compiled(data, target)
        if step % 20 == 0:
            print(f"step {step:3}: loss {loss.item():.3f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

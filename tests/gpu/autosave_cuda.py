"""antifreeze.autosave() of a model on the GPU: ended in the middle and started again, it comes to the same parameters to the last
bit, dropout on the GPU included. Takes no arguments; exit status 1: it does not."""
import os
import subprocess
import sys
import tempfile
import textwrap

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
JOB = """
    import os, sys, time, torch
    import antifreeze
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Dropout(.5), torch.nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randn(512, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    saved = antifreeze.autosave(model, optimizer, path="state.pt", every=0)
    steps = 0
    for epoch in saved.epochs(3):
        for x, y in antifreeze.steps(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
            steps += 1
            time.sleep(.005)
            if steps == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    total = sum(p.double().sum().item() for p in model.parameters())
    print("END", epoch, total, next(iter(optimizer.state.values()))["exp_avg"].is_cuda)
    """


def play(folder, **env):
    env = {**os.environ, "PYTHONPATH": PACKAGE, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **env}
    r = subprocess.run([sys.executable, folder + "/job.py"], env=env,
                       cwd=folder, capture_output=True, text=True, check=False)
    return r.returncode, r.stdout, r.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/job.py", "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(JOB))
        whole = play(folder)
        os.remove(folder + "/state.pt")
        cut = play(folder, STOP_AT="100")
        rest = play(folder)
    print(f"whole: {whole[0]} {whole[1].strip()}\ncut: {cut[0]}\nrest:  {rest[0]} {rest[1].strip()}")
    is_same = whole[0] == rest[0] == 0 and cut[0] == 9 and whole[1] == rest[1] and "True" in whole[1]
    print("the same" if is_same else f"DIFFERENT\n{whole[2]}\n{rest[2]}")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())

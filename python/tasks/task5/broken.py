"""Move a delivered backbone to a new machine: first a new head on top of it, then the whole network."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import workbench

STAGE1_EPOCHS = 24
STAGE2_EPOCHS = 20
BATCH = 250

data = workbench.load_data()
config = workbench.load_config()
torch.manual_seed(config["seed"])
x = torch.from_numpy(data["x"])
y = torch.from_numpy(data["y"])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(32, 64),
            nn.BatchNorm1d(64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.BatchNorm1d(64),
            nn.Tanh(),
        )
        self.head = nn.Linear(64, 5)

    def forward(self, rows):
        return self.head(self.backbone(rows))


def fit(model, optimizer, epochs):
    history = []
    for _ in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(x)).split(BATCH):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        history.append(total / len(x))
    return history


model = Classifier()
prefix = "backbone."
delivered = {name[len(prefix) :]: torch.from_numpy(data[name]) for name in data if name.startswith(prefix)}
model.backbone.load_state_dict(delivered)

# Stage 1: the head learns on top of the backbone as it was delivered.
for parameter in model.backbone.parameters():
    parameter.requires_grad = False
model.train()
losses = fit(model, torch.optim.Adam(model.parameters(), lr=2e-2), STAGE1_EPOCHS)
stage1 = {name: tensor.clone() for name, tensor in model.state_dict().items()}

# Stage 2: the whole network learns.
model.train()
losses += fit(model, torch.optim.Adam(model.parameters(), lr=5e-3), STAGE2_EPOCHS)

print("##METRICS_START##")
print("LOSSES:[" + ", ".join(f"{loss:.6f}" for loss in losses) + "]")
print("##METRICS_END##")
workbench.save_weights("stage1", stage1)
workbench.save_weights("weights", model)
